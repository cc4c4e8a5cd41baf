package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// All errors by a deadline name the rank that has not come and no other one, though most
// ranks wait for ranks that wait themselves. The late rank's next call says the same.
func TestDeadlineNamesTheLate(t *testing.T) {
	for _, size := range []int{4, 16} {
		for late := range size {
			t.Run(fmt.Sprintf("%d of %d", late, size), func(t *testing.T) {
				inBubble(t, size, executor.Config{}, func(t *testing.T, w *executor.World) {
					runs, _ := sumsOn(t, w, fmt.Sprint(size), "shape=flat,fs=all,w=1,s=adapt/chain", 0, 3)
					errs := ranks(t, w, func(ctx context.Context, r int) error {
						w.Endpoint(levels.Rank(r)).Adopt()
						if r == late {
							clocktest.Pass(time.Second)
							return runs[r].Do(ctx)
						}
						ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
						defer cancel()
						return runs[r].Do(ctx)
					})
					for r, err := range errs {
						namesOnly(t, r, err, late)
						if r != late && !strings.Contains(err.Error(), "late_test.go") {
							t.Errorf("rank %d: %v doesn't say where rank %d stands", r, err, late)
						}
					}
				})
			})
		}
	}
}

// A receive that may end alone leaves the communicator whole after its deadline. After a long wait it says why: the
// awaited rank's state, or the circle. A short one is a poll, and asks nobody.
func TestDeadlineOfReceive(t *testing.T) {
	for name, c := range map[string]struct {
		limit time.Duration
		from  []int // by rank; none: -1
		want  string
	}{
		"other tag": {3 * time.Second, []int{1, -1}, "receive from rank 1, tag 5 (what waits has tag 7-8): rank 1 has not come"},
		"poll":      {900 * time.Millisecond, []int{1, -1}, "context deadline exceeded"},
		"away":      {2 * time.Second, []int{1, -1}, "receive from rank 1, tag 5: rank 1 has not come for 1.9 s, it is in no call"},
		"circle":    {2 * time.Second, []int{1, 2, 0}, "deadlock: rank 0 is in receive from rank 1, tag 5, for 1.9 s"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, len(c.from), executor.Config{}, func(t *testing.T, w *executor.World) {
				errs := ranks(t, w, func(ctx context.Context, r int) error {
					w.Endpoint(levels.Rank(r)).Adopt()
					if c.from[r] < 0 {
						for tag := int32(7); name == "other tag" && tag < 9; tag++ {
							if err := send(ctx, w, r, 0, tag, message(8, 1)); err != nil {
								return err
							}
						}
						clocktest.Pass(c.limit + time.Second)
						return nil
					}
					ctx, cancel := context.WithTimeout(ctx, c.limit)
					defer cancel()
					tr, err := w.Endpoint(levels.Rank(r)).Comm(0).RecvAlone(ctx, levels.Rank(c.from[r]), 5, 0, make([]byte, 8))
					if err != nil {
						return err
					}
					return tr.Wait(ctx)
				})
				for r, err := range errs {
					if waits := c.from[r] >= 0; waits != errors.Is(err, context.DeadlineExceeded) || waits && !strings.Contains(err.Error(), c.want) {
						t.Errorf("rank %d: %v, want %q", r, err, c.want)
					}
					if late, ok := errors.AsType[*executor.LateError](err); ok && !late.Alone {
						t.Errorf("rank %d: %v doesn't say that the communicator is whole", r, err)
					}
				}
				succeed(t, w, func(ctx context.Context, r int) error {
					n := len(c.from)
					if err := send(ctx, w, r, (r+1)%n, 5, message(8, r)); err != nil {
						return err
					}
					_, err := recv(ctx, w, r, (r+n-1)%n, 5, make([]byte, 8))
					return err
				})
			})
		})
	}
}

// Of several ranks that have not come, errors by a deadline name those that wait for none of the others: not those in a
// receive from another one, nor in a call before.
func TestDeadlineNamesTheCauses(t *testing.T) {
	const size = 8
	rng := rand.New(rand.NewPCG(5, 5))
	for range 12 {
		order := rng.Perm(size)
		late := order[:2+rng.IntN(4)]
		from := map[int]int{} // late rank: the one it receives from
		var want []int
		for i, r := range late {
			if i > 0 && rng.IntN(2) == 0 {
				from[r] = late[rng.IntN(i)]
			} else {
				want = append(want, r)
			}
		}
		slices.Sort(want)
		t.Run(fmt.Sprintf("%v, receives %v", late, from), func(t *testing.T) {
			inBubble(t, size, executor.Config{}, func(t *testing.T, w *executor.World) {
				runs, _ := sumsOn(t, w, fmt.Sprint(size), "shape=flat,fs=all,w=1,s=adapt/chain", 0, 3)
				errs := ranks(t, w, func(ctx context.Context, r int) error {
					w.Endpoint(levels.Rank(r)).Adopt()
					if !slices.Contains(late, r) {
						ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
						defer cancel()
						return runs[r].Do(ctx)
					}
					if peer, receives := from[r]; receives {
						tr, err := w.Endpoint(levels.Rank(r)).Comm(0).Recv(ctx, levels.Rank(peer), 5, 0, make([]byte, 8))
						if err != nil {
							return err
						}
						return tr.Wait(ctx)
					}
					time.Sleep(time.Second)
					return runs[r].Do(ctx)
				})
				for r, err := range errs {
					var why *executor.LateError
					if !errors.As(err, &why) {
						t.Fatalf("rank %d: %v", r, err)
					}
					var named []int
					for _, l := range why.Late {
						named = append(named, int(l.Rank))
					}
					if !slices.Equal(named, want) {
						t.Errorf("rank %d: %v names %v, want %v", r, err, named, want)
					}
				}
			})
		})
	}
}

// namesOnly checks that an error is of a deadline and names one rank.
func namesOnly(t *testing.T, r int, err error, late int) {
	t.Helper()
	var why *executor.LateError
	if !errors.As(err, &why) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("rank %d: error %v, want a LateError by a deadline", r, err)
	}
	if len(why.Late) != 1 || why.Late[0].Rank != levels.Rank(late) || len(why.Circle) > 0 {
		t.Errorf("rank %d: %+v, want rank %d alone", r, why, late)
	}
	var peer *executor.PeerError
	if errors.As(err, &peer) && peer.Rank != levels.Rank(late) {
		t.Errorf("rank %d: %v blames rank %d", r, err, peer.Rank)
	}
	for other := range 16 {
		if strings.Contains(err.Error(), fmt.Sprintf("rank %d ", other)) != (other == late) {
			t.Errorf("rank %d: %v, want rank %d named and no other", r, err, late)
		}
	}
}

// A limit for calls is a deadline of each, whether the program waits at once or later.
func TestCallTimeout(t *testing.T) {
	for _, how := range []string{"Do", "Start and Wait", "receive", "started receive"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, 2, executor.Config{CallTimeout: 250 * time.Millisecond}, func(t *testing.T, w *executor.World) {
				runs := crossed(t, w, 0)
				do(t, w, runs) // in time
				began := time.Now()
				var err error
				switch c := w.Endpoint(1).Comm(0); how {
				case "Do":
					err = runs[1].Do(t.Context())
				case "Start and Wait":
					if err = runs[1].Start(t.Context()); err == nil {
						err = runs[1].Wait(t.Context())
					}
				case "receive":
					err = received(c, false, t.Context())
				default:
					err = received(c, true, t.Context())
				}
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "limit of 250ms for a call") {
					t.Errorf("error %v", err)
				}
				namesOnly(t, 1, err, 0)
				if took := time.Since(began); took < 250*time.Millisecond || took > 300*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func received(c *executor.Comm, watch bool, ctx context.Context) error {
	tr, err := c.Recv(ctx, 0, 5, 0, make([]byte, 8))
	if err != nil {
		return err
	}
	if watch {
		tr.Watch(ctx)
	}
	return tr.Wait(ctx)
}

// Ranks that all receive from the next one are a deadlock: stall reports say so once, and
// a deadline's error does. Receives that nobody waits for are nobody's trouble.
func TestDeadlock(t *testing.T) {
	var log lines
	const size = 4
	inBubble(t, size, executor.Config{StallAfter: time.Second, Stalls: log.logger()}, func(t *testing.T, w *executor.World) {
		errs := ranks(t, w, func(ctx context.Context, r int) error {
			if r == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 1500*time.Millisecond)
				defer cancel()
			}
			c := w.Endpoint(levels.Rank(r)).Comm(0)
			if _, err := c.Recv(ctx, levels.Rank((r+2)%size), 9, 0, nil); err != nil {
				return err
			}
			tr, err := c.Recv(ctx, levels.Rank((r+1)%size), 5, 0, make([]byte, 8))
			if err != nil {
				return err
			}
			return tr.Wait(ctx)
		})
		text := log.text()
		for r := range size {
			want := fmt.Sprintf(`msg=stalled rank=%d request="receive from rank %d, tag 5" waits="a message" for=1s missing=r%d`, r, (r+1)%size, (r+1)%size)
			if strings.Count(text, want) != 1 {
				t.Errorf("no %s once in\n%s", want, text)
			}
		}
		if strings.Count(text, `verdict="deadlock: `) != 1 || strings.Contains(text, "tag 9") {
			t.Errorf("logged\n%s\nwant one deadlock, and nothing of tag 9", text)
		}
		verdict, at := text[max(0, strings.Index(text, "verdict=")):], 0
		for r := range size {
			next := strings.Index(verdict[at:], fmt.Sprintf("rank %d is in receive from rank %d, tag 5, for ", r, (r+1)%size))
			if next < 0 {
				t.Fatalf("rank %d is not where it belongs in\n%s", r, text)
			}
			at += next
		}
		for r, err := range errs {
			var why *executor.LateError
			if !errors.As(err, &why) || len(why.Circle) != size {
				t.Errorf("rank %d: %v, want the circle of %d", r, err, size)
			}
		}
	})
}

// A receive that waits is in the recording until it ends.
func TestRecordedTransfers(t *testing.T) {
	inBubble(t, 2, executor.Config{}, func(t *testing.T, w *executor.World) {
		done := make(chan error)
		go func() { done <- received(w.Endpoint(1).Comm(0), false, t.Context()) }()
		clocktest.Pass(time.Second)
		open := w.Endpoint(1).Recording().Unfinished()
		if len(open) != 1 || open[0].Request != "receive from rank 0, tag 5" || !open[0].Apart {
			t.Errorf("the recording has %+v", open)
		}
		if _, err := w.Endpoint(0).Comm(0).Send(t.Context(), 1, 5, 0, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if open := w.Endpoint(1).Recording().Unfinished(); len(open) > 0 {
			t.Errorf("after its end: %+v", open)
		}
	})
}

package planner_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

// inHungBubble calls f on goroutine ranks in a bubble whose calls have a limit, and closes the communicators that it returns. Rank 1
// hangs where it calls hang, until the others have returned.
func inHungBubble(t *testing.T, topology string, limit time.Duration, f func(ctx context.Context, c *planner.Comm, hang func()) (*planner.Comm, error)) {
	synctest.Test(t, func(t *testing.T) {
		comms, err := planner.Local(topology, &planner.Options{CallTimeout: limit})
		if err != nil {
			t.Fatal(err)
		}
		var all, others sync.WaitGroup
		others.Add(len(comms) - 1)
		for rank, c := range comms {
			all.Go(func() {
				if rank != 1 {
					defer others.Done()
				}
				c, err := f(t.Context(), c, others.Wait)
				if err == nil {
					err = c.Close()
				}
				if err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		all.Wait()
	})
}

// A rank that hangs in its program holds up no Shrink, however often the others shrink: its library votes for it, on
// communicators too that its program has never made. A call without it names it, and so does Agree.
func TestShrinkWithAHungRank(t *testing.T) {
	const limit, rounds = 2 * time.Second, 3
	for _, hangs := range []string{"before the call", "before Agree", "before Shrink", "after Shrink"} {
		t.Run(hangs, func(t *testing.T) {
			inHungBubble(t, "1x3", limit, func(ctx context.Context, c *planner.Comm, hang func()) (*planner.Comm, error) {
				hung := false
				at := func(point string) {
					if c.Rank() == 1 && point == hangs && !hung {
						hung = true
						hang()
					}
				}
				for round := range rounds {
					at("before the call")
					err := planner.Barrier(ctx, c)
					at("before Agree")
					if err == nil {
						_, err = c.Agree(ctx, true)
					}
					at("before Shrink")
					if whole := round == 0 && (hangs == "before Shrink" || hangs == "after Shrink"); whole && err != nil || !whole && !hung && blames(err, 1) != nil {
						return nil, fmt.Errorf("round %d: %w", round, err)
					}
					began := time.Now()
					change, err := c.Shrink(ctx)
					if err != nil || len(change.Lost) > 0 || time.Since(began) > time.Second {
						return nil, fmt.Errorf("round %d: after %v without %v: %w", round, time.Since(began), change.Lost, err)
					}
					c = change.Comm
					at("after Shrink")
				}
				return c, nil
			})
		})
	}
}

// A rank that hangs is left out when one rank says so, first, and the others go on. It hears why when it asks.
func TestShrinkWithout(t *testing.T) {
	for _, all := range []bool{true, false} { // say so
		inHungBubble(t, "1x4", time.Second, func(ctx context.Context, c *planner.Comm, hang func()) (*planner.Comm, error) {
			if c.Rank() == 1 {
				hang()
				_, err := c.Shrink(ctx)
				if text := fmt.Sprint(err); !errors.Is(err, planner.ErrExcluded) || !strings.Contains(text, "shrink: 3 of 4 ranks: the others have gone on without this rank, after: barrier: rank 1 has not come for ") {
					return nil, fmt.Errorf("the left out rank hears %w", err)
				}
				return c, nil
			}
			if err := planner.Barrier(ctx, c); blames(err, 1) != nil {
				return nil, err
			}
			late := []int{1}
			if c.Rank() > 0 && !all {
				clocktest.Pause(ctx, 100*time.Millisecond)
				late = nil
			}
			began := time.Now()
			change, err := c.ShrinkWithout(ctx, late...)
			if err != nil {
				return nil, err
			}
			if took := time.Since(began); took > 100*time.Millisecond || !slices.Equal(change.Old, []int{0, 2, 3}) || len(change.Lost) != 1 || change.Lost[0].Rank != 1 || change.Lost[0].Proven {
				return nil, fmt.Errorf("after %v %+v", took, change)
			}
			return change.Comm, sum(ctx, change.Comm)
		})
	}
}

// Who would be too few by themselves leave nobody out, and harm nobody by asking for it.
func TestShrinkWithoutTooMany(t *testing.T) {
	for _, test := range []struct {
		topology string
		by       int
		late     []int
		want     string
	}{
		{"1x2", 1, []int{0}, "without ranks [0] 1 of 2 would be left"},
		{"1x5", 3, []int{0, 1, 2}, "without ranks [0 1 2] 2 of 5 would be left"},
		{"1x4", 2, []int{0, 1}, "without ranks [0 1] 2 of 4 would be left"},
		{"1x3", 2, []int{2}, "rank 2 is to be left out by rank 2; allowed are the others of 0 to 2"},
		{"1x3", 2, []int{1 << 32}, "rank 4294967296 is to be left out"},
	} {
		comms := localComms(t, test.topology, nil)
		allSucceed(t, comms, func(ctx context.Context, c *planner.Comm) error {
			if c.Rank() == test.by {
				_, err := c.ShrinkWithout(ctx, test.late...)
				if wantError(t, "too many", err, test.want); len(test.late) > 1 && !errors.Is(err, planner.ErrMinority) {
					return err
				}
			}
			return sum(ctx, c)
		})
	}
}

// Elastic goes on without a rank that hangs once it was named often enough in a row: by default twice, if calls have a limit.
// A rank that is late now and then stays.
func TestElasticLeavesOut(t *testing.T) {
	const limit, steps = time.Second, 5
	for _, test := range []struct {
		leaveOut, steps int
		agrees          bool          // each step, and f begins with a call
		late            []int         // steps before which rank 1 is late, by a fifth of a limit
		want            time.Duration // until the others are without rank 1; 0: they never are, and it ends by an error
	}{
		{0, 0, false, nil, limit + limit*3/10},
		{0, 2, true, nil, limit + limit*7/10},
		{1, 2, false, nil, limit},
		{3, 1, false, nil, 2*limit + limit*3/10},
		{-1, 0, false, nil, 0},
		{0, 0, false, []int{1, 3}, 0},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			said := &lockedBuffer{}
			defer func() {
				if says := strings.Contains(said.String(), "ranks that hang are left out"); says != (test.want > 0) || strings.Contains(said.String(), "left out\" rank=1") {
					t.Errorf("logged: %s", said)
				}
			}()
			inHungBubble(t, "1x4", limit, func(ctx context.Context, c *planner.Comm, hang func()) (*planner.Comm, error) {
				o := elastic.Options{Options: &planner.Options{CallTimeout: limit, Log: slog.New(slog.NewTextHandler(said, nil))}, LeaveOut: test.leaveOut}
				began, hung, late, step, one := time.Now(), false, test.late, 0, c.Rank() == 1
				next, err := elastic.Stay(ctx, c, &o, func(ctx context.Context, c *planner.Comm, change *planner.Change) error {
					if change != nil && len(change.Lost) > 0 {
						if took := time.Since(began); took < test.want || took > test.want+100*time.Millisecond || test.want == 0 {
							return fmt.Errorf("without %v after %v", change.Lost, took)
						}
					}
					if test.agrees {
						if err := sum(ctx, c); err != nil {
							return err
						}
					}
					for ; step < steps; step++ {
						if one && len(test.late) == 0 && !hung && step == test.steps {
							hung = true
							hang()
						}
						if one && len(late) > 0 && late[0] == step {
							late = late[1:]
							clocktest.Pause(ctx, limit*6/5)
						}
						err := sum(ctx, c)
						if test.agrees {
							if all, failed := c.Agree(ctx, err == nil); !all {
								return cmp.Or(err, failed, planner.ErrRevoked)
							}
						}
						if err != nil {
							return err
						}
					}
					return nil
				})
				size := 4
				if test.want > 0 {
					size = 3
				}
				switch {
				case hung && test.want > 0 && errors.Is(err, planner.ErrExcluded):
					err = nil
				case test.want == 0 && len(test.late) == 0 && blames(err, 1) == nil:
					err = nil
				case err == nil && next.Size() != size:
					err = fmt.Errorf("%d ranks in the end", next.Size())
				}
				return next, err
			})
		})
	}
}

// Nobody waits in Close for a rank that was left out and hangs still, nor does that one for the others.
func TestCloseWithoutAHungRank(t *testing.T) {
	for i, perNode := range []int{1, 2, 4, 1, 2, 4} {
		comms := joinProcesses(t, 4, perNode, &planner.Options{CloseTimeout: patience})
		first := i < 3 // the one left out closes first
		var others, one sync.WaitGroup
		others.Add(3)
		one.Add(1)
		noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
			if c.Rank() == 2 {
				defer one.Done()
				others.Wait()
				// Ranks that have left already may not have told it of their decision.
				if _, err := c.Shrink(ctx); !errors.Is(err, planner.ErrExcluded) && (first || !errors.Is(err, planner.ErrMinority)) {
					return fmt.Errorf("the left out rank hears %w", err)
				}
				return c.Close()
			}
			change, err := c.ShrinkWithout(ctx, 2)
			if first {
				others.Done()
				one.Wait()
			} else {
				defer others.Done()
			}
			if err != nil {
				return err
			}
			return errors.Join(sum(ctx, change.Comm), change.Comm.Close())
		}))
	}
}

// A service of weeks: ranks are late, cancel calls, revoke the communicator and disagree, and all go on by Shrink, which
// keeps all of them. Neither memory nor goroutines grow. TIERFLOW_TEST_FAULTS is how many faults are drawn: 100,000 are 72
// hours of the ranks' time.
func TestWeeksOfFaults(t *testing.T) {
	faults := 2000
	if text := os.Getenv("TIERFLOW_TEST_FAULTS"); text != "" {
		var err error
		if faults, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		const limit = 7 * time.Second
		comms, err := planner.Local("2x2", &planner.Options{CallTimeout: limit})
		if err != nil {
			t.Fatal(err)
		}
		began, rng := time.Now(), rand.New(rand.NewPCG(1, 9))
		play := func(rounds int) {
			for range rounds {
				kind, whose := rng.IntN(4), rng.IntN(len(comms))
				var all sync.WaitGroup
				for rank, c := range comms {
					all.Go(func() {
						err := fault(t.Context(), c, kind, rank == whose, limit)
						var change planner.Change
						if err == nil {
							change, err = c.Shrink(t.Context())
							comms[rank] = change.Comm
						}
						if err == nil && len(change.Lost) == 0 {
							err = sum(t.Context(), comms[rank])
						}
						if err != nil || len(change.Lost) > 0 {
							t.Fatalf("fault %d of rank %d: rank %d goes on without %v: %v", kind, whose, rank, change.Lost, err)
						}
					})
				}
				all.Wait()
			}
		}
		held := func() (bytes, goroutines int) {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc), runtime.NumGoroutine()
		}
		play(faults / 4)
		bytes, goroutines := held()
		play(faults - faults/4)
		moreBytes, moreGoroutines := held()
		if moreGoroutines != goroutines || moreBytes-bytes > 1<<19 {
			t.Errorf("%d goroutines after %d faults, %d after %d; %d bytes, and %d more", goroutines, faults/4, moreGoroutines, faults, bytes, moreBytes-bytes)
		}
		t.Logf("%d faults in %v of the ranks' time; %d bytes, and %d more", faults, time.Since(began).Round(time.Minute), bytes, moreBytes-bytes)
		closeAll(t, comms)
	})
}

// fault is a call that fails on all ranks because of one of them; mine: this one.
func fault(ctx context.Context, c *planner.Comm, kind int, mine bool, limit time.Duration) error {
	var err error
	x := []int{1}
	switch {
	case kind == 0: // it is late
		if mine {
			clocktest.Pause(ctx, limit+limit/2)
		}
		err = planner.Barrier(ctx, c)
	case kind == 1: // it gives up
		mineCtx, cancel := context.WithCancel(ctx)
		if mine {
			cancel()
		}
		err = planner.Barrier(mineCtx, c)
		cancel()
	case kind == 2 && mine: // it ends the communicator
		err = errors.New("revoked")
		if failed := c.Revoke(err); failed != nil {
			return failed
		}
	case kind == 3 && mine: // it calls something else
		if err = planner.Reduce(ctx, c, x, x, tasks.Sum, 0); err == nil { // its part may be sent, and nothing more to do
			err = planner.Barrier(ctx, c)
		}
	default:
		err = planner.Allreduce(ctx, c, x, x, tasks.Sum)
	}
	if err == nil {
		return fmt.Errorf("fault %d, mine %v: no error", kind, mine)
	}
	return nil
}

// pauses are the drawn pauses of a rank, by point and step.
type pauses map[string]time.Duration

// drawPauses draws them for some steps. A calm rank is slow now and then, by less than the limit from call to call; others are
// late once as well, perhaps for ever.
func drawPauses(rng *rand.Rand, calm bool, limit time.Duration, steps int) (p pauses, late time.Duration) {
	p = pauses{}
	key := func(point string) string { return fmt.Sprint(point, rng.IntN(steps)) }
	points := []string{"sync", "call", "agree", "agreed", "close"}
	for range rng.IntN(4) {
		p[key(points[rng.IntN(len(points))])] = time.Duration(rng.Int64N(int64(limit / 4)))
	}
	if !calm {
		late = []time.Duration{limit / 2, limit * 11 / 10, limit * 3 / 2, 3 * limit, time.Hour}[rng.IntN(5)]
		p[key(points[rng.IntN(len(points))])] = late
	}
	return p, late
}

// Drawn ranks of a service are slow, late or hang in drawn places before, between and behind its calls. The others have the right sums, within
// the limit and a second after each who is late, and none of them is left out. Who was late stays, or hears that it is out.
func TestDrawnHangs(t *testing.T) {
	const limit, steps = 2 * time.Second, 4
	draws := 60
	if text := os.Getenv("TIERFLOW_TEST_DRAWS"); text != "" {
		var err error
		if draws, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	for draw := range draws {
		rng := rand.New(rand.NewPCG(seed, uint64(draw)))
		size := 3 + rng.IntN(4)
		victims := rng.Perm(size)[:1+rng.IntN((size-1)/2)]
		all, lates, bound := make([]pauses, size), make([]time.Duration, size), time.Duration(0)
		for r := range all {
			all[r], lates[r] = drawPauses(rng, !slices.Contains(victims, r), limit, steps)
			for _, d := range all[r] {
				if d < time.Hour {
					bound += d
				}
			}
			if lates[r] > 0 {
				bound += limit + time.Second
			}
		}
		name := fmt.Sprintf("draw %d of seed %d: pauses %v", draw, seed, all)
		synctest.Test(t, func(t *testing.T) {
			comms, err := planner.Local(fmt.Sprintf("1x%d", size), &planner.Options{CallTimeout: limit})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var ranks, others sync.WaitGroup
			others.Add(size - len(victims))
			for rank, c := range comms {
				ranks.Go(func() {
					if !slices.Contains(victims, rank) {
						defer others.Done()
					}
					err := playDrawn(ctx, c, all[rank], steps, limit, others.Wait)
					took := time.Since(began)
					if out := lates[rank] > limit && errors.Is(err, planner.ErrExcluded); err != nil && !out {
						t.Errorf("%s: rank %d: %v", name, rank, err)
					}
					if lates[rank] == 0 && took > bound {
						t.Errorf("%s: rank %d took %v, at most %v is right", name, rank, took, bound)
					}
				})
			}
			ranks.Wait()
		})
	}
}

// playDrawn plays a rank of such a service. A pause of an hour ends when the others have ended.
func playDrawn(ctx context.Context, c *planner.Comm, p pauses, steps int, limit time.Duration, othersEnd func()) error {
	state := []float64{0, 0} // the next step, and the sum of all
	at := func(point string) {
		key := fmt.Sprint(point, int(state[0]))
		d := p[key]
		if delete(p, key); d == time.Hour {
			othersEnd()
		} else if d > 0 {
			clocktest.Pause(ctx, d)
		}
	}
	o := elastic.Options{Options: &planner.Options{CallTimeout: limit, Log: slog.New(slog.DiscardHandler)}}
	next, err := elastic.Stay(ctx, c, &o, func(ctx context.Context, c *planner.Comm, _ *planner.Change) error {
		at("sync")
		if _, err := elastic.Sync(ctx, c, uint64(state[0]), elastic.PartOf("state", state)); err != nil {
			return err
		}
		for int(state[0]) < steps {
			at("call")
			x := []float64{state[0] + 1}
			err := planner.Allreduce(ctx, c, x, x, tasks.Sum)
			at("agree")
			if all, failed := c.Agree(ctx, err == nil); !all {
				return cmp.Or(err, failed, planner.ErrRevoked)
			}
			if want := (state[0] + 1) * float64(c.Size()); x[0] != want || state[1] != state[0]*(state[0]+1)/2 {
				return fmt.Errorf("step %v: %v of %v, %v before", state[0], x[0], want, state[1])
			}
			state[1] += state[0] + 1
			at("agreed")
			state[0]++
		}
		return nil
	})
	state[0] = 0
	at("close")
	return errors.Join(err, next.Close())
}

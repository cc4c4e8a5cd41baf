package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// everyone is the ranks of a world.
func everyone(w *executor.World) []levels.Rank {
	all := make([]levels.Rank, w.Size())
	for r := range all {
		all[r] = levels.Rank(r)
	}
	return all
}

// barrierOn binds a rank's barrier on one of its communicators.
func barrierOn(t failer, c *executor.Comm) *executor.Run {
	t.Helper()
	h, p := parse(t, fmt.Sprintf("1x%d", c.Size()), "shape=han,fs=all,w=1,s=adapt/binomial,i=adapt/chain")
	return job{topology: h, request: tasks.Request{Coll: tasks.Barrier}, plan: p}.bindOne(t, c, nil, nil)
}

// Numbers that ranks draw at the same time, in any number of goroutines, all differ.
func TestDrawnNumbersDiffer(t *testing.T) {
	w := newWorld(t, 3, executor.Config{})
	for range 16 {
		if _, err := w.Endpoint(2).Draw(); err != nil {
			t.Fatal(err)
		}
	}
	if id, err := w.Endpoint(2).Draw(); err != nil || id.String() != "r2.17" {
		t.Errorf("rank 2's 17th number is %v, error %v", id, err)
	}
	w.Endpoint(1).Drew(1<<wire.DrawnBits - 2)
	if id, err := w.Endpoint(1).Draw(); err != nil || id.String() != "r1.4398046511103" {
		t.Errorf("rank 1's last number is %v, error %v", id, err)
	}
	if id, err := w.Endpoint(1).Draw(); err == nil || !strings.Contains(err.Error(), "rank 1 has drawn 4398046511103 numbers") {
		t.Errorf("after the last number %v, error %v", id, err)
	}
	w.Endpoint(1).Drew(0)
	var mu sync.Mutex
	var all sync.WaitGroup
	seen := map[executor.CommID]bool{0: true}
	for r := range w.Size() {
		for range 4 {
			all.Go(func() {
				for range 500 {
					id, err := w.Endpoint(levels.Rank(r)).Draw()
					mu.Lock()
					if err != nil || seen[id] {
						t.Errorf("rank %d drew %v again, or error %v", r, id, err)
					}
					seen[id] = true
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
}

// A communicator of another number, or none, is what a rank gets that makes one twice or
// is not in it.
func TestMakeErrors(t *testing.T) {
	w := newWorld(t, 3, executor.Config{})
	e := w.Endpoint(1)
	makeComm(t, e, 7, []levels.Rank{2, 1})
	for want, ranks := range map[string][]levels.Rank{"has one of that number": {1, 2}, "is not among its ranks [0 2]": {0, 2}} {
		id := executor.CommID(7)
		if len(ranks) == 2 && !slices.Contains(ranks, 1) {
			id = 8
		}
		if _, err := e.Make(id, ranks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("make %v of %v: error %v, want %q", id, ranks, err, want)
		}
	}
}

// Communicators leave nothing behind when all their ranks have closed them, in any order
// and after any use.
func TestClosedCommunicatorsAreForgotten(t *testing.T) {
	onBoth(t, []string{"1x3", "3x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		const rounds = 40
		bars := worldBarriers(t, w)
		succeed(t, w, func(ctx context.Context, r int) error {
			e := w.Endpoint(levels.Rank(r))
			var open []*executor.Comm
			for i := range rounds {
				c := makeComm(t, e, executor.CommID(1+i), everyone(w))
				if i%2 == 0 {
					if err := shift(ctx, c, i); err != nil {
						return err
					}
				}
				if i%3 == 0 {
					if err := barrierOn(t, c).Do(ctx); err != nil {
						return err
					}
				}
				if i%5 == 0 { // nobody receives it
					if _, err := c.Send(ctx, levels.Rank((r+1)%w.Size()), 9, 0, make([]byte, 100)); err != nil {
						return err
					}
				}
				open = append(open, c)
			}
			for _, i := range shuffled(r, len(open)) {
				if err := open[i].Close(); err != nil {
					return err
				}
			}
			return nil
		})
		nothingLeft(t, w, bars)
	})
}

// shuffled is 0 to n-1 in an order of a rank's own.
func shuffled(rank, n int) []int { return rand.New(rand.NewPCG(uint64(rank), 1)).Perm(n) }

// A goodbye on the communicator of all ranks changes nothing for those that have others
// without the ranks that leave: their small calls go straight through as before.
func TestGoodbyeOfOthersKeepsCallsStraight(t *testing.T) {
	onBoth(t, []string{"1x4"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		runs := make([]*executor.Run, w.Size())
		comms := make([]*executor.Comm, w.Size())
		for r := range runs {
			e, id := w.Endpoint(levels.Rank(r)), executor.CommID(1+r/2)
			comms[r] = makeComm(t, e, id, []levels.Rank{levels.Rank(r / 2 * 2), levels.Rank(r/2*2 + 1)})
			runs[r] = barrierOn(t, comms[r])
		}
		succeed(t, w, func(ctx context.Context, r int) error {
			if r < 2 {
				return errors.Join(runs[r].Do(ctx), w.Endpoint(levels.Rank(r)).Close())
			}
			return nil
		})
		// Both ranks of a straight call must be running: on one processor they never are.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
		before := comms[2].Counters()
		succeed(t, w, func(ctx context.Context, r int) error {
			for i := 0; i < 20_000 && r >= 2; i++ {
				if err := runs[r].Do(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if after := comms[2].Counters(); after.Straight == before.Straight && runtime.NumCPU() > 1 {
			t.Errorf("none of %d calls went straight through", after.Runs-before.Runs)
		}
	})
}

// A rank that never made a communicator, and leaves, is not waited for in it.
func TestCommunicatorThatOneRankNeverMade(t *testing.T) {
	t.Parallel() // it mostly waits
	onBoth(t, []string{"1x3", "3x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		succeed(t, w, func(ctx context.Context, r int) error {
			if r == 2 {
				return w.Endpoint(2).Close()
			}
			c := makeComm(t, w.Endpoint(levels.Rank(r)), 5, everyone(w))
			err := barrierOn(t, c).Do(ctx)
			if !names(err, 2) || !errors.Is(err, executor.ErrClosed) {
				return fmt.Errorf("barrier: %w", err)
			}
			return nil
		})
	})
}

// A rank disowns the call in which others made a communicator. It breaks on them, also
// on one that makes it later; others don't.
func TestDisown(t *testing.T) {
	onBoth(t, []string{"1x3", "3x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		derive := func(r int, id executor.CommID, seq uint32) (*executor.Comm, error) {
			return w.Endpoint(levels.Rank(r)).Comm(0).Derive(id, everyone(w), seq)
		}
		var disowned sync.WaitGroup
		disowned.Add(1)
		succeed(t, w, func(ctx context.Context, r int) error {
			other, err := derive(r, 4, 3)
			if err != nil {
				return err
			}
			switch r {
			case 2:
				if err := clocktest.Await(ctx, func() bool { return len(w.Endpoint(0).Waiting()) > 0 }); err != nil {
					return err
				}
				w.Endpoint(2).Comm(0).Disown(4, errEnough)
				disowned.Done()
			case 1: // it makes its end late
				disowned.Wait()
				fallthrough
			case 0:
				c, err := derive(r, 5, 4)
				if err != nil {
					return err
				}
				if err := barrierOn(t, c).Do(ctx); err == nil || !strings.Contains(err.Error(), errEnough.Error()) {
					return fmt.Errorf("barrier on what rank 2 doesn't have: %w", err)
				}
			}
			return barrierOn(t, other).Do(ctx)
		})
	})
}

// A communicator that a rank disowns because another one has died breaks because of that
// one, if it is a member.
func TestDisownNamesTheFirst(t *testing.T) {
	onBoth(t, []string{"1x3", "3x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		succeed(t, w, func(ctx context.Context, r int) error {
			if r == 2 {
				w.Endpoint(2).Comm(0).Disown(4, executor.LostRank(1, errEnough))
				return nil
			}
			if r == 1 {
				return nil
			}
			c, err := w.Endpoint(0).Comm(0).Derive(5, everyone(w), 4)
			if err != nil {
				return err
			}
			err = barrierOn(t, c).Do(ctx)
			if !names(err, 1) || strings.Contains(err.Error(), "rank 2") {
				return fmt.Errorf("barrier on what rank 2 doesn't have because of rank 1: %w", err)
			}
			return nil
		})
	})
}

// What others have made in a call stays whole when a rank disowns the call that is no member, before
// or after they have made it.
func TestDisownByNoMember(t *testing.T) {
	onBoth(t, []string{"1x3", "3x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		succeed(t, w, func(ctx context.Context, r int) error {
			world := w.Endpoint(levels.Rank(r)).Comm(0)
			if r == 2 {
				world.Disown(3, executor.LostRank(1, errEnough))
				world.Disown(4, errEnough)
				return nil
			}
			without2 := everyone(w)[:2]
			before, err := world.Derive(5, without2, 3)
			if err != nil {
				return err
			}
			with2, err := world.Derive(6, everyone(w), 4)
			if err != nil {
				return err
			}
			if err := barrierOn(t, with2).Do(ctx); err == nil { // then all that rank 2 has said is here
				return errors.New("barrier on what rank 2 doesn't have succeeded")
			}
			after, err := world.Derive(7, without2, 3)
			if err != nil {
				return err
			}
			return errors.Join(barrierOn(t, before).Do(ctx), barrierOn(t, after).Do(ctx))
		})
	})
}

// A rank breaks a communicator, and its peers then don't make another one in a call on it. The rank
// hears its own error on that one, not the text that came back.
func TestOwnErrorComesBack(t *testing.T) {
	mine := errors.New("my own")
	onBoth(t, []string{"1x3", "3x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		succeed(t, w, func(ctx context.Context, r int) error {
			parent := makeComm(t, w.Endpoint(levels.Rank(r)), 5, everyone(w))
			if r != 1 {
				err := barrierOn(t, parent).Do(ctx)
				if !names(err, 1) {
					return fmt.Errorf("barrier that rank 1 has left: %w", err)
				}
				parent.Disown(3, err)
				return nil
			}
			child, err := parent.Derive(6, everyone(w), 3)
			if err != nil {
				return err
			}
			done, cancel := context.WithCancelCause(ctx)
			cancel(mine)
			if err := barrierOn(t, parent).Do(done); !errors.Is(err, mine) {
				return fmt.Errorf("barrier left: %w", err)
			}
			if err := barrierOn(t, child).Do(ctx); !errors.Is(err, mine) {
				return fmt.Errorf("barrier on what the others don't have: %w", err)
			}
			return nil
		})
	})
}

// A large send whose receive is too short ends although the receiver is gone when the
// sender comes to look.
func TestShortReceiveThenClose(t *testing.T) {
	onBoth(t, []string{"1x2", "2x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		c := w.Endpoint(0).Comm(0)
		bars := worldBarriers(t, w)
		do(t, w, bars)                                                 // now there is a connection
		sent, err := c.Send(t.Context(), 1, 0, 0, make([]byte, 1<<20)) // nobody drives rank 0 from here on
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := recv(ctx, w, 1, 0, 0, make([]byte, 10)); !errors.Is(err, executor.ErrTruncated) {
			t.Errorf("receive: %v", err)
		}
		if err := w.Endpoint(1).Close(); err != nil {
			t.Error(err)
		}
		clocktest.Pause(t.Context(), 20*time.Millisecond) // all that rank 1 has said is here
		succeed(t, w, func(ctx context.Context, r int) error {
			if r == 0 {
				return sent.Wait(ctx)
			}
			return nil
		})
	})
}

// The others are told of a failure before it shows here: a rank that hears of it may
// close everything at once, and then nobody could be told any more.
func TestOthersAreToldFirst(t *testing.T) {
	p := processesOf(t, "1x2")
	broken, told := p.BrokenBeforeTold(0)
	ctx, cancel := context.WithCancel(t.Context())
	never := post(t, ctx, p.Endpoint(0).Comm(0), 1, 0, nil)
	never.Watch(ctx)
	cancel()
	if err := never.Wait(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if told.Load() != 1 || broken.Load() != 0 {
		t.Errorf("the communicator was broken in %d of the %d times that the others were told", broken.Load(), told.Load())
	}
}

// A question about a call that has ended on both ranks meanwhile is answered once: answers to
// answers would keep both ranks busy for ever, and neither would find out that it stands still.
func TestProbeOfEndedCall(t *testing.T) {
	onBoth(t, []string{"1x2", "2x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		do(t, w, worldBarriers(t, w))
		w.Endpoint(0).Comm(0).Probe(1, 0)
		for begin, last := time.Now(), time.Now(); time.Since(last) < 100*time.Millisecond; {
			for r := range w.Size() {
				if w.Endpoint(levels.Rank(r)).Poll() {
					last = time.Now()
				}
			}
			if time.Since(begin) > patience {
				t.Fatal("the ranks are still busy with each other")
			}
		}
	})
}

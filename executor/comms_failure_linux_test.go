package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// worldBarriers binds a barrier of each rank on the communicator of all ranks.
func worldBarriers(t failer, w *executor.World) []*executor.Run {
	bars := make([]*executor.Run, w.Size())
	for r := range bars {
		bars[r] = barrierOn(t, w.Endpoint(levels.Rank(r)).Comm(0))
	}
	return bars
}

// nothingLeft waits until the ranks know of no communicator but that of all ranks.
func nothingLeft(t *testing.T, w *executor.World, bars []*executor.Run) {
	t.Helper()
	clocktest.Until(t, "no communicator is left", func() bool { // goodbyes by the control plane are on their way
		do(t, w, bars)
		left := 0
		for r := range w.Size() {
			left += w.Endpoint(levels.Rank(r)).Comms() - 1
		}
		return left == 0
	})
}

// holdingLocks returns hooks for a world, and a function that starts a run and holds its rank's lock until
// release is called.
func holdingLocks() (hooks trace.Hooks, hold func(run *executor.Run) (release func())) {
	var armed atomic.Bool
	entered, leave := make(chan struct{}), make(chan struct{})
	hooks.Run = func(trace.Event) {
		if armed.CompareAndSwap(true, false) {
			close(entered)
			<-leave
		}
	}
	return hooks, func(run *executor.Run) func() {
		armed.Store(true)
		var held sync.WaitGroup
		held.Go(func() { _ = run.Do(context.Background()) })
		<-entered
		return func() {
			close(leave)
			held.Wait()
		}
	}
}

// A communicator that is closed while its failure is on its way, marked but not settled,
// still ends what waits on it, with the cause of the failure.
func TestCloseBetweenMarkAndSettle(t *testing.T) {
	hooks, hold := holdingLocks()
	w := newWorld(t, 2, executor.Config{Hooks: hooks})
	c := makeComm(t, w.Endpoint(0), 1, []levels.Rank{0})
	release := hold(barrierOn(t, makeComm(t, w.Endpoint(1), 2, []levels.Rank{1})))
	ctx, cancel := context.WithCancelCause(t.Context())
	never := post(t, ctx, c, 0, 1, make([]byte, 8))
	never.Watch(ctx)
	cancel(errEnough)
	for {
		if _, err := c.Recv(t.Context(), 0, 2, 0, nil); errors.Is(err, executor.ErrBroken) {
			break
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	release()
	if err := waitLong(never); !errors.Is(err, errEnough) {
		t.Errorf("error %v", err)
	}
}

// A communicator that is closed while its failure is on its way, told but not marked on its rank, is not
// made anew by the mark: nothing is left of it.
func TestCloseBetweenTellingAndMark(t *testing.T) {
	hooks, hold := holdingLocks()
	w := newWorld(t, 2, executor.Config{Hooks: hooks})
	c := makeComm(t, w.Endpoint(1), 1, []levels.Rank{1})
	release := hold(barrierOn(t, makeComm(t, w.Endpoint(0), 2, []levels.Rank{0}))) // rank 0 is marked first
	var revoking sync.WaitGroup
	revoking.Go(func() { c.Revoke(errEnough) })
	if err := clocktest.Await(t.Context(), c.Told); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	release()
	revoking.Wait()
	if n := w.Endpoint(1).Comms(); n != 1 {
		t.Errorf("the rank knows of %d communicators, want that of all ranks only", n)
	}
}

// What a rank has sent to itself, and never received, is gone with the communicator.
func TestSelfMessagesOfClosedCommunicators(t *testing.T) {
	onBoth(t, []string{"1x2"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		e, bars := w.Endpoint(0), worldBarriers(t, w)
		for i := range 1000 { // more than the budget
			c := makeComm(t, e, executor.CommID(1+i), []levels.Rank{0})
			if _, err := c.Send(t.Context(), 0, 1, 0, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
			if err := toSelf(t.Context(), e.Comm(0), nil, true); err != nil { // which looks at what has come
				t.Fatal(err)
			}
		}
		nothingLeft(t, w, bars)
	})
}

// Communicators that break on all ranks at the same time, and are closed, leave nothing
// behind; the cause isn't lost to a goodbye that is faster.
func TestBrokenCommunicatorsAreForgotten(t *testing.T) {
	onBoth(t, []string{"1x3", "3x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		bars := worldBarriers(t, w)
		for i := range 60 {
			succeed(t, w, func(ctx context.Context, r int) error {
				c := makeComm(t, w.Endpoint(levels.Rank(r)), executor.CommID(1+i), everyone(w))
				if i%2 == 0 || r == 0 { // all of them, or one
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
					defer cancel()
				}
				_, err := recvOn(ctx, c, levels.Rank((r+1)%w.Size()), 1, nil)
				if !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("round %d: %w", i, err)
				}
				return c.Close()
			})
		}
		nothingLeft(t, w, bars)
	})
}

// A goodbye that comes before a rank has told all others why it breaks the communicator
// doesn't take the place of the reason.
func TestGoodbyeWhileTelling(t *testing.T) {
	p := processesOf(t, "3x1")
	comms := make([]*executor.Comm, p.Size())
	for r := range comms {
		comms[r] = makeComm(t, p.Endpoint(levels.Rank(r)), 1, everyone(p.World))
	}
	var once sync.Once
	p.AfterTold(0, func() {
		once.Do(func() { // rank 1 hears the reason and leaves
			_ = clocktest.Await(t.Context(), func() bool {
				if comms[1].Failed() {
					_ = comms[1].Close()
				}
				return comms[0].Goodbyes() > 0
			})
		})
	})
	never := post(t, t.Context(), comms[0], 1, 0, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	never.Watch(ctx)
	cancel(errEnough)
	if err := waitLong(never); !errors.Is(err, errEnough) {
		t.Errorf("error %v", err)
	}
}

// What a rank says about a failure has left its process before its own calls return: the
// program may end the process then.
func TestFailureIsOutBeforeItIsSeen(t *testing.T) {
	ways := map[string]func(p *Processes, c *executor.Comm){
		"cancel": func(_ *Processes, c *executor.Comm) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errEnough)
			never := post(t, t.Context(), c, 1, 0, nil)
			never.Watch(ctx)
			if err := waitLong(never); !errors.Is(err, errEnough) {
				t.Errorf("error %v", err)
			}
		},
		"panic":  func(p *Processes, _ *executor.Comm) { p.Fail(0, errEnough) },
		"disown": func(_ *Processes, c *executor.Comm) { c.Disown(1, errEnough) },
	}
	for name, fail := range ways {
		t.Run(name, func(t *testing.T) {
			p := processesOf(t, "2x1")
			var out atomic.Bool
			c := makeComm(t, p.Endpoint(0), 1, everyone(p.World))
			p.WhenOut(0, func() { out.Store(true) })
			fail(p, c)
			if !out.Load() {
				t.Error("the failure is seen before the word of it has left")
			}
		})
	}
}

// A rank that leaves because another one is lost says so: who waits for it, and hasn't
// heard of the loss, names the lost rank.
func TestGoodbyeBeforeTheLoss(t *testing.T) {
	for _, all := range []bool{false, true} { // closes all, or one communicator
		t.Run(fmt.Sprintf("all=%t", all), func(t *testing.T) {
			p := processesOf(t, "3x1")
			one := makeComm(t, p.Endpoint(1), 1, everyone(p.World))
			two := makeComm(t, p.Endpoint(2), 1, everyone(p.World))
			never := post(t, t.Context(), one, 2, 0, nil)
			p.Lose(2, 0, errEnough)
			if all {
				_ = p.Endpoint(2).Close()
			} else {
				_ = two.Close()
			}
			if err := waitLong(never); !names(err, 0) || !strings.Contains(err.Error(), errEnough.Error()) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A rank that breaks a communicator and closes everything at once is heard to have broken
// it, also when its goodbye is faster than the reason.
func TestGoodbyeToAllBeforeTheReason(t *testing.T) {
	p := processesOf(t, "2x1")
	zero := makeComm(t, p.Endpoint(0), 1, everyone(p.World))
	one := makeComm(t, p.Endpoint(1), 1, everyone(p.World))
	arrived := post(t, t.Context(), p.Endpoint(1).Comm(0), 0, 0, nil)
	sent, err := p.Endpoint(0).Comm(0).Send(t.Context(), 1, 0, 0, nil) // so that goodbyes go over the link
	if err != nil {
		t.Fatal(err)
	}
	for _, half := range []*executor.Transfer{sent, arrived} {
		half.Watch(t.Context())
	}
	if err := errors.Join(sent.Wait(t.Context()), arrived.Wait(t.Context())); err != nil {
		t.Fatal(err)
	}
	never := post(t, t.Context(), one, 0, 0, nil)
	wait := p.TellLate(0, 20*time.Millisecond)
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := post(t, ctx, zero, 1, 0, nil)
	mine.Watch(ctx)
	cancel(errEnough)
	if err := mine.Wait(t.Context()); !errors.Is(err, errEnough) {
		t.Fatalf("error %v", err)
	}
	if err := p.Endpoint(0).Close(); err != nil {
		t.Error(err)
	}
	if err := waitLong(never); err == nil || !strings.Contains(err.Error(), errEnough.Error()) {
		t.Errorf("error %v", err)
	}
	wait()
}

// Several goroutines that close a communicator during a call say goodbye once.
func TestTwoCloses(t *testing.T) {
	onBoth(t, []string{"1x2"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		bars := worldBarriers(t, w)
		for i := range 200 {
			c := makeComm(t, w.Endpoint(0), executor.CommID(1+i), everyone(w))
			other := makeComm(t, w.Endpoint(1), executor.CommID(1+i), everyone(w))
			if _, err := c.Recv(t.Context(), 1, 1, 0, nil); err != nil {
				t.Fatal(err)
			}
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { _ = c.Close() })
			}
			_ = other.Close()
			both.Wait()
		}
		nothingLeft(t, w, bars)
	})
}

// What came early for a communicator that a rank disowns is let go of, and its budget is
// given back.
func TestDisownedBudget(t *testing.T) {
	onBoth(t, []string{"1x2", "2x1"}, executor.Config{EagerBudget: 64 << 10}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		bars := worldBarriers(t, w)
		c := w.Endpoint(1).Comm(0)
		for i := range 50 {
			d, err := w.Endpoint(0).Comm(0).Derive(executor.CommID(1+i), everyone(w), uint32(i))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Send(t.Context(), 1, 1, 0, make([]byte, 4000)); err != nil {
				t.Fatal(err)
			}
			do(t, w, bars)
			c.Disown(uint32(i), errEnough)
			for { // until it is known there
				if _, err := d.Recv(t.Context(), 1, 1, 0, nil); err != nil {
					break
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		clocktest.Until(t, "the budget is whole again", func() bool {
			do(t, w, bars)
			return w.Endpoint(0).Budget(1) >= 60<<10
		})
		if n := w.Endpoint(0).Comms(); n != 1 {
			t.Errorf("%d communicators are left on the rank that made them", n-1)
		}
	})
}

// A mismatch stays one when it ends everything.
func TestFailKeepsTheMismatch(t *testing.T) {
	p := processesOf(t, "1x2")
	never := post(t, t.Context(), p.Endpoint(1).Comm(0), 0, 1, nil)
	p.Fail(0, &executor.MismatchError{Rank: 0, Peer: 1, Request: "a", PeerWants: "b"})
	if err := waitLong(never); !errors.Is(err, executor.ErrMismatch) {
		t.Errorf("error %v", err)
	}
}

// A rank that has closed everything makes no communicator any more. Others that make one
// with it don't wait for ever, in either direction.
func TestCommunicatorMadeAfterClose(t *testing.T) {
	t.Parallel() // it mostly waits
	inBubble(t, 3, executor.Config{}, closeThenMake)
	for _, topo := range []string{"1x3", "3x1"} {
		t.Run(topo, func(t *testing.T) {
			t.Parallel() // each waits for the time that a late goodbye has
			closeThenMake(t, processesOf(t, topo).World)
		})
	}
}

// closeThenMake has rank 1 of three close, and all make a communicator then.
func closeThenMake(t *testing.T, w *executor.World) {
	succeed(t, w, func(ctx context.Context, r int) error {
		e := w.Endpoint(levels.Rank(r))
		if r == 1 {
			if err := e.Close(); err != nil {
				return err
			}
		}
		c := makeComm(t, e, 5, everyone(w))
		var err error
		if r == 0 { // nobody will send it
			_, err = recvOn(ctx, c, 2, 1, nil)
		} else {
			err = barrierOn(t, c).Do(ctx)
		}
		if !errors.Is(err, executor.ErrClosed) {
			return fmt.Errorf("error %w", err)
		}
		return nil
	})
}

// A rank that makes a communicator late, after a run on it has ended on the others because
// one of them left, writes nothing into their buffers.
func TestLateRankWritesNothing(t *testing.T) {
	onBoth(t, []string{"3x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		const n = 100_000
		h, p := parse(t, "1x3", "shape=flat,fs=all,w=1,i=adapt/linear,s=adapt/linear")
		j := job{topology: h, request: tasks.Request{Coll: tasks.Bcast, Count: n, Type: tasks.Uint8, Root: 2}, plan: p}
		bufs := [][]byte{make([]byte, n), make([]byte, n), message(n, 2)}
		do(t, w, worldBarriers(t, w)) // now there are connections
		bcast := func(ctx context.Context, c *executor.Comm) error {
			b, err := j.compile(c.Rank())
			if err != nil {
				return err
			}
			b.Recv = bufs[c.Rank()]
			run, err := c.Bind(b)
			if err != nil {
				return err
			}
			if err := run.Do(ctx); !errors.Is(err, executor.ErrClosed) {
				return fmt.Errorf("rank %d: %w", c.Rank(), err)
			}
			return nil
		}
		for r := range 3 { // one after the other
			succeed(t, w, func(ctx context.Context, me int) error {
				e := w.Endpoint(levels.Rank(me))
				switch {
				case me != [3]int{1, 0, 2}[r]:
					return nil
				case me == 1:
					return makeComm(t, e, 5, everyone(w)).Close()
				case me == 2:
					if err := toSelf(ctx, e.Comm(0), nil, true); err != nil { // looks at what has come
						return err
					}
				}
				return bcast(ctx, makeComm(t, e, 5, everyone(w)))
			})
			if r == 1 {
				copy(bufs[0], message(n, 0))
			}
		}
		if !bytes.Equal(bufs[0], message(n, 0)) {
			t.Error("the buffer of a run that had ended was written")
		}
	})
}

// Ranks that the control plane doesn't reach any more hear of failures and goodbyes all
// the same.
func TestRanksThatAreCutOff(t *testing.T) {
	for _, name := range []string{"failure", "goodbye"} {
		t.Run(name, func(t *testing.T) {
			p := processesOf(t, "3x1")
			p.Cut(0, 2)
			succeed(t, p.World, func(ctx context.Context, r int) error {
				mine, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				c := makeComm(t, p.Endpoint(levels.Rank(r)), 4, everyone(p.World))
				if r == 0 {
					if name == "goodbye" {
						return c.Close()
					}
					never, err := c.Recv(mine, 1, 1, 0, nil)
					if err != nil {
						return err
					}
					never.Watch(mine)
					cancel(errEnough)
					_ = never.Wait(ctx)
					return nil
				}
				_, err := recvOn(ctx, c, 0, 1, nil) // there is no link
				if !names(err, 0) {
					return fmt.Errorf("error %w", err)
				}
				return nil
			})
		})
	}
}

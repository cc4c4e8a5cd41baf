package executor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// culprit is the rank of two that combines in an allreduce along a chain.
const culprit = 0

// folds binds an allreduce along a chain of two, by an operation whose function calls act on the culprit.
func folds(t *testing.T, w *executor.World, comm executor.CommID, act func()) []*executor.Run {
	t.Helper()
	return foldsOf(t, w, comm, 3, act)
}

// foldsOf is folds of so many elements.
func foldsOf(t *testing.T, w *executor.World, comm executor.CommID, count int64, act func()) []*executor.Run {
	t.Helper()
	h, p := parse(t, "1x2", "shape=han,fs=all,w=1,s=adapt/chain,i=adapt/chain")
	j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: count, Type: tasks.Int32, InPlace: true}, p}
	runs := make([]*executor.Run, 2)
	for r := range runs {
		j.request.Op = tasks.UserOp("fold", true, func(a, b int32) int32 {
			if r == culprit {
				act()
			}
			return a + b
		})
		runs[r] = j.bindOne(t, w.Endpoint(levels.Rank(r)).Comm(comm), nil, raw(append([]int32{int32(r + 1), 0, 7}, make([]int32, count-3)...)))
	}
	return runs
}

// waysToWait are how the goroutine of the culprit is occupied when its operation runs.
var waysToWait = []string{"waits", "waits elsewhere", "started"}

// waitFor starts a run and ends it in one of these ways.
func waitFor(ctx context.Context, w *executor.World, run *executor.Run, rank int, how string) error {
	if err := run.Start(ctx); err != nil {
		return err
	}
	switch {
	case rank == culprit && how == "waits elsewhere":
		never, err := w.Endpoint(culprit).Comm(0).Recv(ctx, 1-culprit, 1, 0, nil)
		if err == nil {
			_ = never.Wait(ctx)
		}
	case rank == culprit && how == "started":
		_ = clocktest.Await(ctx, run.Done) // driven in the background
	}
	return run.Wait(ctx) // which returns, whatever the operation does to its goroutine
}

// An operation that panics or ends its goroutine breaks the communicator on all ranks, with an error that
// names the rank; the world can be closed afterwards and other communicators go on.
func TestOperationFails(t *testing.T) {
	for name, act := range map[string]func(){
		"ends":   runtime.Goexit,
		"panics": func() { panic("no sum") },
	} {
		for _, how := range waysToWait {
			t.Run(name+"/"+how, func(t *testing.T) {
				onBoth(t, []string{"1x2", "2x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
					runs, bars := folds(t, w, 0, act), barriersOn(t, w, 3)
					errs := ranks(t, w, func(ctx context.Context, r int) error { return waitFor(ctx, w, runs[r], r, how) })
					for r, err := range errs {
						step, ok := errors.AsType[*executor.StepError](err)
						peer, isPeer := errors.AsType[*executor.PeerError](err)
						if r == culprit && (!ok || step.Rank != culprit) || r != culprit && (!isPeer || peer.Rank != culprit) {
							t.Errorf("rank %d: %v, want the culprit's step to blame", r, err)
						}
					}
					do(t, w, bars)
				})
			})
		}
	}
}

// barriersOn binds barriers on a new communicator of all ranks.
func barriersOn(t *testing.T, w *executor.World, id executor.CommID) []*executor.Run {
	t.Helper()
	bars := make([]*executor.Run, w.Size())
	for r := range bars {
		bars[r] = barrierOn(t, makeComm(t, w.Endpoint(levels.Rank(r)), id, everyone(w)))
	}
	return bars
}

// An operation may use communicators: counts, messages and collectives of others than its own. A call on its own
// one, by which somebody waits for the operation, is refused.
func TestOperationCommunicates(t *testing.T) {
	onBoth(t, []string{"1x2", "2x1"}, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		bars := barriersOn(t, w, 3)
		var within, refused, received error
		var once sync.Once
		ctx := t.Context()
		runs := folds(t, w, 0, func() {
			once.Do(func() {
				c := w.Endpoint(culprit).Comm(0)
				c.Counters()
				refused = barrierOn(t, c).Do(ctx)
				within = bars[culprit].Do(ctx)
				in := make([]byte, 1)
				var got *executor.Transfer
				if got, received = c.Recv(ctx, 1-culprit, 5, tasks.Uint8, in); received == nil {
					received = got.Wait(ctx)
				}
			})
		})
		succeed(t, w, func(ctx context.Context, r int) error {
			if r != culprit {
				var other sync.WaitGroup
				defer other.Wait()
				other.Go(func() {
					if err := bars[r].Do(ctx); err != nil {
						t.Error(err)
					}
					sent, err := w.Endpoint(levels.Rank(r)).Comm(0).Send(ctx, culprit, 5, tasks.Uint8, []byte{1})
					if err == nil {
						err = sent.Wait(ctx)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			return runs[r].Do(ctx)
		})
		if !errors.Is(refused, executor.ErrBusy) || !strings.Contains(refused.Error(), "in its operation") || within != nil || received != nil {
			t.Errorf("a barrier of its own communicator: %v, want %v; of another one: %v; a message: %v", refused, executor.ErrBusy, within, received)
		}
	})
}

// So it is where the operation runs before the start of its call has returned, because all it needs has come.
func TestOperationInTheStart(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	var refused error
	var once sync.Once
	ctx := t.Context()
	runs := folds(t, w, 0, func() {
		once.Do(func() { refused = barrierOn(t, w.Endpoint(culprit).Comm(0)).Do(ctx) })
	})
	if err := runs[1-culprit].Start(ctx); err != nil {
		t.Fatal(err)
	}
	for !w.Endpoint(culprit).Poll() {
		runtime.Gosched()
	}
	if err := runs[culprit].Do(ctx); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(refused, executor.ErrBusy) || !strings.Contains(refused.Error(), "in its operation") {
		t.Errorf("a barrier of its own communicator: %v, want %v", refused, executor.ErrBusy)
	}
	if err := runs[1-culprit].Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

// While a rank's operation blocks, all else on the rank goes on, and the rank says where it is. A call that is
// cancelled ends when its operation has returned: until then its buffers are in use.
func TestOperationBlocks(t *testing.T) {
	inBubble(t, 2, executor.Config{StallAfter: -1}, func(t *testing.T, w *executor.World) {
		entered, leave := make(chan bool), make(chan bool)
		runs, bars := folds(t, w, 0, sync.OnceFunc(func() { close(entered); <-leave })), barriersOn(t, w, 3)
		mine, cancel := context.WithCancelCause(t.Context())
		returned := make([]bool, 2)
		var errs []error
		var calls sync.WaitGroup
		calls.Go(func() {
			errs = ranks(t, w, func(ctx context.Context, r int) error {
				if r == culprit {
					ctx = mine
				}
				err := runs[r].Do(ctx)
				returned[r] = true
				return err
			})
		})
		<-entered
		if s := w.Endpoint(culprit).State(0); s.Doing == flight.Computing {
			t.Errorf("at once its state is %v", &s)
		}
		clocktest.Pass(time.Second)
		s := w.Endpoint(culprit).State(0)
		if come, known := s.HasCome(0, 0); s.Doing != flight.Computing || len(s.Open) != 1 || !s.Open[0].Operating || !s.Open[0].Awaited || !come || !known {
			t.Errorf("its state is %+v", &s)
		}
		if a := w.Endpoint(culprit).Activity(1, func(levels.Rank) int { return 0 }); !a.Computing || a.Running != 1 || a.Waited > 10*time.Millisecond {
			t.Errorf("its activity is %+v", a)
		}
		do(t, w, bars)
		cancel(errEnough)
		clocktest.Pass(time.Second)
		if returned[culprit] || !returned[1-culprit] {
			t.Errorf("before the operation has returned, the ranks' calls have: %v, want the other rank's", returned)
		}
		do(t, w, bars)
		close(leave)
		calls.Wait()
		if errs[culprit] != errEnough || !errors.Is(errs[1-culprit], errEnough) {
			t.Errorf("%v, want %v", errs, errEnough)
		}
	})
}

// A deadline names the rank whose operation blocks. That rank names itself, if its own deadline is the first.
func TestOperationLate(t *testing.T) {
	for first := range 2 {
		inBubble(t, 2, executor.Config{StallAfter: -1}, func(t *testing.T, w *executor.World) {
			leave := make(chan bool)
			runs := folds(t, w, 0, func() { <-leave })
			time.AfterFunc(10*time.Second, func() { close(leave) })
			errs := ranks(t, w, func(ctx context.Context, r int) error {
				limit := 3 * time.Second
				if r == first {
					limit = 2 * time.Second
				}
				ctx, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				return runs[r].Do(ctx)
			})
			for r, err := range errs {
				if err == nil || !strings.Contains(err.Error(), "rank 0 is in an operation of its program") || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("rank %d first: rank %d has %v", first, r, err)
				}
			}
		})
	}
}

// A rank may leave in an operation, as a failure of the call that it is for. A world whose operation doesn't return
// is closed with an error, and ends with the operation.
func TestOperationCloses(t *testing.T) {
	inBubble(t, 2, executor.Config{}, func(t *testing.T, w *executor.World) {
		var left, closed error
		var took time.Duration
		runs := folds(t, w, 0, sync.OnceFunc(func() {
			left = w.Endpoint(culprit).Close()
			began := time.Now()
			closed = w.Close()
			took = time.Since(began)
		}))
		errs := ranks(t, w, func(ctx context.Context, r int) error { return runs[r].Do(ctx) })
		for _, err := range append(errs, left) {
			if err == nil || !strings.Contains(err.Error(), "closed during allreduce 3 i32 fold #0") {
				t.Errorf("%v, want the call that was left", err)
			}
		}
		if closed == nil || took != time.Second || !strings.Contains(closed.Error(), "an operation of rank 0 runs") {
			t.Errorf("closed with %v after %v", closed, took)
		}
		synctest.Wait()
	})
}

// Time in an operation, and time that the program computes before its call, are no waits.
func TestOperationNotWaited(t *testing.T) {
	for _, took := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 250 * time.Millisecond} {
		inBubble(t, 2, executor.Config{StallAfter: -1}, func(t *testing.T, w *executor.World) {
			runs := folds(t, w, 0, sync.OnceFunc(func() { time.Sleep(took) }))
			do(t, w, barriersOn(t, w, 3))
			clocktest.Pass(10 * time.Second) // it computes
			before := w.Endpoint(culprit).Activity(1, func(levels.Rank) int { return 0 })
			do(t, w, runs)
			a := w.Endpoint(culprit).Activity(1, func(levels.Rank) int { return 0 })
			if a.Waited-before.Waited > took/10 {
				t.Errorf("an operation of %v: waited %v", took, a.Waited-before.Waited)
			}
		})
	}
}

type loudError struct{ say func() string }

func (e loudError) Error() string { return e.say() }

// The text of a panic may use the rank's communicators, too.
func TestOperationPanicsLoudly(t *testing.T) {
	inBubble(t, 2, executor.Config{StallAfter: -1}, func(t *testing.T, w *executor.World) {
		runs := folds(t, w, 0, func() {
			panic(loudError{func() string {
				return fmt.Sprint("failed after ", w.Endpoint(culprit).Comm(0).Counters().Runs, " calls")
			}})
		})
		errs := ranks(t, w, func(ctx context.Context, r int) error { return runs[r].Do(ctx) })
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "failed after 1 calls") {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	})
}

// A deadline names the rank whose operation is slow, also if each piece is fast.
func TestOperationSlowPieces(t *testing.T) {
	inBubble(t, 2, executor.Config{StallAfter: -1}, func(t *testing.T, w *executor.World) {
		n := 0
		runs := foldsOf(t, w, 0, 100<<10, func() {
			if n++; n%1000 == 0 {
				time.Sleep(100 * time.Millisecond / 9) // a piece takes 8 or 9 of these
			}
		})
		errs := ranks(t, w, func(ctx context.Context, r int) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second/2)
			defer cancel()
			return runs[r].Do(ctx)
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "rank 0 is in an operation of its program") {
				t.Errorf("rank %d has %v", r, err)
			}
		}
	})
}

// A deadline blames the rank whose operation holds up the call, not one with an operation of another call.
func TestOperationOfAnotherCall(t *testing.T) {
	inBubble(t, 2, executor.Config{StallAfter: -1}, func(t *testing.T, w *executor.World) {
		leave := make(chan bool)
		time.AfterFunc(10*time.Second, func() { close(leave) })
		// Rank 0 combines for a call on communicator 0 for long, which nobody waits for.
		others := folds(t, w, 0, func() { <-leave })
		for r, run := range others {
			if err := run.Start(t.Context()); err != nil {
				t.Fatal(r, err)
			}
		}
		// On a communicator with its ranks reversed that one is rank 1, and rank 0's operation holds up the call.
		reverse(w)
		h, p := parse(t, "1x2", "shape=han,fs=all,w=1,s=adapt/chain,i=adapt/chain")
		j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: 3, Type: tasks.Int32, InPlace: true}, p}
		j.request.Op = tasks.UserOp("fold", true, func(a, b int32) int32 { <-leave; return a + b })
		runs := j.bindOn(t, 1, nil, [][]byte{make([]byte, 12), make([]byte, 12)})
		clocktest.Pass(time.Second)
		errs := ranks(t, w, func(ctx context.Context, r int) error {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			return runs[r].Do(ctx)
		})
		for r, err := range errs {
			if err == nil || strings.Contains(err.Error(), "rank 1 is") || !strings.Contains(err.Error(), "rank 0 is in an operation") {
				t.Errorf("rank %d: %v, want rank 0 alone", r, err)
			}
			if peer, ok := errors.AsType[*executor.PeerError](err); ok && peer.Rank != 0 {
				t.Errorf("rank %d blames rank %d", r, peer.Rank)
			}
		}
		for _, run := range others {
			_ = run.Wait(t.Context())
		}
	})
}

// A hook that ends the goroutine of an operation fails the call, as one does on a driver.
func TestOperationHookExits(t *testing.T) {
	var once sync.Once
	hook := func(e trace.Event) {
		buf := make([]byte, 8<<10)
		if e.Rank == culprit && strings.Contains(string(buf[:runtime.Stack(buf, false)]), "combineQueued") {
			once.Do(runtime.Goexit)
		}
	}
	inBubble(t, 2, executor.Config{StallAfter: -1, Hooks: trace.Hooks{Step: hook}}, func(t *testing.T, w *executor.World) {
		runs := folds(t, w, 0, func() {})
		errs := ranks(t, w, func(ctx context.Context, r int) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return runs[r].Do(ctx)
		})
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "a hook ended the goroutine") {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	})
}

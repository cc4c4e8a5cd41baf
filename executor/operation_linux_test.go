package executor_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// An operation that ends its goroutine, or uses a communicator, breaks the communicator
// on all ranks with an error that names the rank; the world can be closed afterwards and
// other communicators go on. It runs in the goroutine that waits for the call, in one
// that waits for something else, or in the background.
func TestOperationMisbehaves(t *testing.T) {
	for name, act := range map[string]func(w *executor.World){
		"ends":   func(*executor.World) { runtime.Goexit() },
		"binds":  func(w *executor.World) { barrierOn(t, w.Endpoint(culprit).Comm(0)) },
		"counts": func(w *executor.World) { w.Endpoint(culprit).Comm(0).Counters() },
		"closes": func(w *executor.World) { _ = w.Endpoint(culprit).Close() },
	} {
		for _, how := range []string{"waits", "waits elsewhere", "started"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				onBoth(t, []string{"1x2", "2x1"}, executor.Config{}, func(t *testing.T, w *executor.World, h *levels.Topology) {
					misbehave(t, w, h, how, act)
				})
			})
		}
	}
}

// Between goroutine ranks, the communicator of another rank and the world as a whole are
// out of an operation's reach too.
func TestOperationUsesOtherRanks(t *testing.T) {
	for name, act := range map[string]func(w *executor.World){
		"counts": func(w *executor.World) { w.Endpoint(1 - culprit).Comm(0).Counters() },
		"closes": func(w *executor.World) { _ = w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, executor.Config{})
			h, _ := parse(t, "1x2", "")
			misbehave(t, w, h, "waits", act)
		})
	}
}

// culprit is the rank of two that combines in an allreduce along a chain.
const culprit = 0

// misbehave lets the culprit's operation act, in an allreduce that a goroutine of that
// rank waits for in some way.
func misbehave(t *testing.T, w *executor.World, h *levels.Topology, how string, act func(w *executor.World)) {
	_, p := parse(t, "1x2", "shape=han,fs=all,w=1,s=adapt/chain,i=adapt/chain")
	j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: 3, Type: tasks.Int32, InPlace: true}, p}
	runs, bars := make([]*executor.Run, 2), make([]*executor.Run, 2)
	for r := range runs {
		j.request.Op = tasks.UserOp("fold", true, func(a, b int32) int32 {
			if r == culprit {
				act(w)
			}
			return a + b
		})
		runs[r] = j.bindOne(t, w.Endpoint(levels.Rank(r)).Comm(0), nil, raw(make([]int32, 3)))
		bars[r] = barrierOn(t, makeComm(t, w.Endpoint(levels.Rank(r)), 3, everyone(w)))
	}
	errs := ranks(t, w, func(ctx context.Context, r int) (err error) {
		if err := runs[r].Start(ctx); err != nil {
			return err
		}
		var waiter sync.WaitGroup
		switch {
		case r == culprit && how == "waits elsewhere":
			waiter.Go(func() {
				never, err := w.Endpoint(culprit).Comm(0).Recv(ctx, 1-culprit, 1, 0, nil)
				if err == nil {
					_ = never.Wait(ctx)
				}
			})
		case r == culprit && how == "waits":
			return runs[r].Wait(ctx) // which returns, whatever the operation does to its goroutine
		}
		waiter.Wait()
		_ = clocktest.Await(ctx, func() bool { return len(w.Endpoint(levels.Rank(r)).Waiting()) == 0 }) // driven in the background
		return runs[r].Wait(ctx)
	})
	for r, err := range errs {
		step, ok := errors.AsType[*executor.StepError](err)
		peer, isPeer := errors.AsType[*executor.PeerError](err)
		if r == culprit && (!ok || step.Rank != culprit) || r != culprit && (!isPeer || peer.Rank != culprit) {
			t.Errorf("rank %d: %v, want the culprit's step to blame", r, err)
		}
	}
	do(t, w, bars)
}

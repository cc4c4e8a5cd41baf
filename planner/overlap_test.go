package planner_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// A call that would overlap another goroutine's is refused, whichever way it is made, and names the other. The first
// call goes on, and so do started ones.
func TestOverlapsAreRefused(t *testing.T) {
	for name, comms := range map[string][]*planner.Comm{"goroutines": localComms(t, "1x2", nil), "processes": joinProcesses(t, 2, 1, nil)} {
		refused := make(chan struct{})
		allSucceed(t, comms, func(ctx context.Context, c *planner.Comm) error {
			x := []int64{int64(c.Rank()) + 1}
			kept, err := planner.Allreduce(c, x, x, tasks.Sum)
			if err != nil {
				return err
			}
			if c.Rank() == 1 {
				<-refused
				return planner.BarrierNow(ctx, c)
			}
			var first error
			var others sync.WaitGroup
			others.Go(func() { first = planner.BarrierNow(ctx, c) })
			for c.Counters().Runs == 0 { // the barrier has begun, and rank 1 isn't coming yet
			}
			_, errSplit := c.Split(ctx, 0, 0)
			_, errValue := planner.AllreduceValue(ctx, c, 1.5, tasks.Sum)
			for what, err := range map[string]error{
				"run": kept.Run(ctx), "now": planner.AllreduceNow(ctx, c, x, x, tasks.Max), "split": errSplit, "value": errValue,
			} {
				if !errors.Is(err, planner.ErrBusy) || !strings.Contains(err.Error(), "barrier") || !strings.Contains(err.Error(), "overlap_test.go:") {
					t.Errorf("%s: %s beside a barrier: %v; want ErrBusy, with the barrier and its place", name, what, err)
				}
			}
			close(refused)
			others.Wait()
			return first
		})
	}
}

// Goroutines that share a communicator by mistake hear of it. Sums may be wrong before: calls that follow each other
// on every rank, but in another order, don't overlap.
func TestSharingIsHeardOf(t *testing.T) {
	const goroutines, calls = 8, 200
	comms := localComms(t, "1x2", nil)
	var wrong, busy, right atomic.Int64
	errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for range calls {
					sum, err := planner.AllreduceValue(ctx, c, g, tasks.Sum)
					switch {
					case errors.Is(err, planner.ErrBusy):
						busy.Add(1)
						_ = c.Revoke(err) // as a program does that ends
						return
					case err != nil:
						return
					case sum == 2*g:
						right.Add(1)
					default:
						wrong.Add(1)
					}
				}
			})
		}
		all.Wait()
		return nil
	})
	noErrors(t, errs)
	each(comms, func(_ context.Context, c *planner.Comm) error { return c.Close() })
	if busy.Load() == 0 {
		t.Errorf("nobody heard that calls overlap: %d sums right, %d wrong", right.Load(), wrong.Load())
	}
}

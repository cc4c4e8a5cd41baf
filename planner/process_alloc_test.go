//go:build !race

package planner_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Running allocates nothing over shared memory, nor over TCP, whatever the size.
func TestProcessesAllocateNothing(t *testing.T) {
	for _, shape := range [][2]int{{2, 2}, {2, 1}, {4, 2}} {
		for _, n := range []int{1, 10_000, 200_000} {
			processes(t, shape[0], shape[1], nil, allocatesNothing(n, 400))
		}
	}
}

// Nor does it while calls are traced.
func TestTracedCallsAllocateNothing(t *testing.T) {
	for _, perNode := range []int{2, 1} {
		processes(t, 2, perNode, &planner.Options{Trace: t.TempDir() + ":every=2"}, allocatesNothing(10, 80))
	}
}

// allocatesNothing is a rank that runs an allreduce of n elements again and again.
func allocatesNothing(n, runs int) func(ctx context.Context, c *planner.Comm) error {
	const rounds = 5
	return func(ctx context.Context, c *planner.Comm) error {
		buf := make([]int32, n)
		col, err := planner.Allreduce(c, buf, buf, tasks.Max)
		if err != nil {
			return err
		}
		for range 20 {
			if err := col.Run(ctx); err != nil {
				return err
			}
		}
		// The control plane and the runtime allocate now and then, and on a busy machine
		// for long. A run's own allocations show in each round.
		least := uint64(math.MaxUint64)
		for range rounds {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range runs {
				if err := col.Run(ctx); err != nil {
					return err
				}
			}
			runtime.ReadMemStats(&after)
			least = min(least, after.Mallocs-before.Mallocs)
		}
		if least > uint64(runs/2) {
			return fmt.Errorf("%d allocations in %d runs of %d elements, in the best of %d rounds", least, runs, n, rounds)
		}
		return nil
	}
}

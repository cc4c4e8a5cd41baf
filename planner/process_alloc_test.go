//go:build !race

package planner_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Running allocates nothing over shared memory, nor over TCP, whatever the size.
func TestProcessesAllocateNothing(t *testing.T) {
	const runs = 400
	for _, shape := range [][2]int{{2, 2}, {2, 1}, {4, 2}} {
		for _, n := range []int{1, 10_000, 200_000} {
			processes(t, shape[0], shape[1], nil, func(ctx context.Context, c *planner.Comm) error {
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
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for range runs {
					if err := col.Run(ctx); err != nil {
						return err
					}
				}
				runtime.ReadMemStats(&after)
				// The control plane and the runtime may allocate now and then.
				if got := after.Mallocs - before.Mallocs; got > runs/2 {
					return fmt.Errorf("%d allocations in %d runs of %d elements", got, runs, n)
				}
				return nil
			})
		}
	}
}

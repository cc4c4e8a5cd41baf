//go:build !race

package planner_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Running allocates nothing over shared memory, nor over TCP, whatever the size.
func TestProcessesAllocateNothing(t *testing.T) {
	for _, shape := range [][2]int{{2, 2}, {2, 1}, {4, 2}} {
		for _, n := range []int{1, 10_000, 200_000} {
			processes(t, shape[0], shape[1], nil, allocatesNothing(n, 100))
		}
	}
}

// Nor does it while calls are traced.
func TestTracedCallsAllocateNothing(t *testing.T) {
	for _, perNode := range []int{2, 1} {
		processes(t, 2, perNode, &planner.Options{Trace: t.TempDir() + ":every=2"}, allocatesNothing(10, 200))
	}
}

// allocatesNothing is a rank that runs an allreduce of n elements. Rank 0 counts what Run allocates on all ranks
// meanwhile: what the control plane and the runtime do beside it is not counted. Queues grow with the distance
// between ranks, and connections come when they are first needed: a few times in all, whatever the number of runs.
func allocatesNothing(n, runs int) func(ctx context.Context, c *planner.Comm) error {
	return func(ctx context.Context, c *planner.Comm) error {
		buf := make([]int32, n)
		col, err := planner.PrepareAllreduce(ctx, c, buf, buf, tasks.Max)
		if err != nil {
			return err
		}
		counted := func(runs int) (allocated int64, err error) {
			if c.Rank() == 0 {
				defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
				runtime.MemProfileRate = 1 // all are recorded
				allocated = -allocatedBy("executor.(*Run).")
			}
			for range runs {
				if err == nil {
					err = col.Run(ctx)
				}
			}
			if err = errors.Join(err, planner.Barrier(ctx, c)); c.Rank() == 0 {
				allocated += allocatedBy("executor.(*Run).")
			}
			return allocated, err
		}
		if _, err := counted(runs); err != nil { // queues have grown by then, as far as busy processors let ranks drift apart
			return err
		}
		got, err := counted(runs)
		if err == nil && got > int64(runs/4) {
			err = fmt.Errorf("%d allocations in %d runs of %d elements", got, runs, n)
		}
		return err
	}
}

// allocatedBy counts the allocations so far by functions with such a name, and by those they call. Three things are left
// out. Taking shared memory makes a ring when it is first needed. A rank that has waited for a while answers others'
// inquiries and writes down what it waits for; where processors are busy, ranks do. The collector's cleanups give back
// what earlier worlds had.
func allocatedBy(function string) (n int64) {
	runtime.GC()
	runtime.GC() // what a cycle has counted is published by the next
	all := make([]runtime.MemProfileRecord, 1000)
	for k, ok := runtime.MemProfile(all, true); ; k, ok = runtime.MemProfile(all, true) {
		if ok {
			all = all[:k]
			break
		}
		all = make([]runtime.MemProfileRecord, 2*k)
	}
	for i := range all {
		within, beside := false, false
		frames := runtime.CallersFrames(all[i].Stack())
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			within = within || strings.Contains(f.Function, function)
			beside = beside || strings.Contains(f.Function, "proc.(*process).share") || strings.Contains(f.Function, "executor.(*Endpoint).carryOut") ||
				strings.Contains(f.Function, "executor.(*Endpoint).lookAround") || f.Function == "runtime.runCleanups"
		}
		if within && !beside {
			n += all[i].AllocObjects
		}
	}
	return n
}

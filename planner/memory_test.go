package planner_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// memoryOf is what a rank's programs for a request need beside the caller's buffers.
func memoryOf(t *testing.T, r tasks.Request, on *levels.Topology, p tasks.Plan, rank levels.Rank) (bytes int64) {
	t.Helper()
	compiled, err := submodules.CompileRequest(r, on, p, rank, all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	for _, prog := range []*submodules.Program{compiled.Whole, compiled.Rest} {
		if prog != nil {
			bytes = max(bytes, prog.Scratch+prog.Slots+prog.Backup)
		}
	}
	return bytes
}

// A rank's memory beside the caller's buffers does not grow with the message. It is
// at most three windows of segments: one for each level that a leader works on, and
// one to reduce into.
func TestMemoryWithinWindow(t *testing.T) {
	for _, spec := range []string{"1x4", "4x1", "4x2"} {
		on := tasktest.Topology(t, spec)
		for _, r := range []tasks.Request{
			{Coll: tasks.Bcast, Type: tasks.Float32},
			{Coll: tasks.Reduce, Type: tasks.Float32, Op: tasks.Sum},
			{Coll: tasks.Allreduce, Type: tasks.Float32, Op: tasks.Sum, InPlace: true},
			{Coll: tasks.Scan, Type: tasks.Float32, Op: tasks.Sum},
			{Coll: tasks.Scan, Type: tasks.Float32, Op: tasks.Sum, InPlace: true},
		} {
			for _, shape := range []tasks.Shape{0, tasks.Han, tasks.Flat} { // 0: the rule's own
				for rank := range levels.Rank(on.Size()) {
					var needs [2]int64
					for i, mib := range []int64{64, 256} {
						r.Count = mib << 20 / 4
						p, _ := builtin.Choose(r, on, tasks.Plan{Shape: shape})
						needs[i] = memoryOf(t, r, on, p, rank)
						if most := 3 * int64(p.Window) * p.Segment; needs[i] > most {
							t.Errorf("%s, %v of %d MiB, %v: rank %d needs %d bytes, over 3 windows, which are %d", spec, r.Coll, mib, p, rank, needs[i], most)
						}
					}
					if needs[0] != needs[1] {
						t.Errorf("%s, %v, shape %v: rank %d needs %d bytes for 64 MiB, %d for 256 MiB", spec, r.Coll, shape, rank, needs[0], needs[1])
					}
				}
			}
		}
	}
}

// A leader of an exscan keeps the total of its group beside what comes before it: its
// scratch is at most three windows of segments, and another one is slots.
func TestExscanMemoryWithinWindow(t *testing.T) {
	for _, spec := range []string{"1x4", "4x1", "4x2"} {
		on := tasktest.Topology(t, spec)
		for _, inPlace := range []bool{false, true} {
			r := tasks.Request{Coll: tasks.Exscan, Type: tasks.Float32, Op: tasks.Sum, InPlace: inPlace, Count: 64 << 20 / 4}
			p, _ := builtin.Choose(r, on, tasks.Plan{})
			for rank := range levels.Rank(on.Size()) {
				needs, most := memoryOf(t, r, on, p, rank), 4*int64(p.Window)*p.Segment
				if r.Count *= 4; needs > most || memoryOf(t, r, on, p, rank) != needs {
					t.Errorf("%s, %v: rank %d needs %d bytes, over 4 windows, which are %d, or more for more", spec, p, rank, needs, most)
				}
				r.Count /= 4
			}
		}
	}
}

// A goroutine rank needs a few bytes for each other one, though all say goodbye to all: 48 here, hundreds if messages
// or states are kept for each pair.
func TestMemoryOfManyRanks(t *testing.T) {
	const n = 1500
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	noErrors(t, []error{planner.Run(t.Context(), fmt.Sprintf("1x%d", n), nil, func(ctx context.Context, c *planner.Comm) error {
		return planner.Barrier(ctx, c)
	})})
	runtime.ReadMemStats(&after)
	const rank = 64 << 10 // of its own
	if pair := (int64(after.TotalAlloc-before.TotalAlloc) - n*rank) / (n * n); pair > 100 {
		t.Errorf("%d bytes for each pair of ranks", pair)
	}
}

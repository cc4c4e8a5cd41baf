package plans_test

import (
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// The registry knows all words of every rival, and each collective with a price has some.
func TestRivalsAreKnown(t *testing.T) {
	for _, spec := range []string{"4x1", "4x2", "3x3", "2x2x2"} {
		on, err := levels.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, coll := range []tasks.Collective{
			tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.ReduceScatter, tasks.Gather, tasks.Scatter, tasks.Alltoall, tasks.Barrier,
		} {
			r := tasks.Request{Coll: coll}
			if coll.HasData() {
				r.Count, r.Type = 1<<18, tasks.Float32
			}
			if r.Reduces() {
				r.Op = tasks.Sum
			}
			asked := rule.Ask(r, on)
			ruled, _ := asked.Choose(tasks.Plan{})
			rivals := plans.Rivals(asked, ruled)
			if len(rivals) == 0 {
				t.Errorf("%v on %s: no rivals", coll, spec)
			}
			for _, p := range rivals {
				if err := all.Submodules().Check(p); err != nil {
					t.Errorf("%v on %s: %v", coll, spec, err)
				}
			}
		}
	}
}

// On one node, and where the order of ranks matters, there are none.
func TestNoRivals(t *testing.T) {
	for spec, op := range map[string]tasks.Op{"8": tasks.Sum, "4x2": tasks.UserOp("first", false, func(a, _ float32) float32 { return a })} {
		on, err := levels.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		asked := rule.Ask(tasks.Request{Coll: tasks.Allreduce, Count: 1024, Type: tasks.Float32, Op: op}, on)
		ruled, _ := asked.Choose(tasks.Plan{})
		if rivals := plans.Rivals(asked, ruled); len(rivals) > 0 {
			t.Errorf("on %s: %v", spec, rivals)
		}
	}
}

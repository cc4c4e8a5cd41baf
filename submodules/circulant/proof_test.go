package circulant_test

import (
	"strconv"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/submodules/circulant"
	"github.com/tierflow/tierflow/tasks"
)

// TestProved: the programs of groups of 1 to 300 ranks are right, under roots that
// move on. The conformance suite has more requests, and groups of up to nine.
func TestProved(t *testing.T) {
	reg := submodules.Registry{circulant.Circulant{}}
	for n := 1; n <= 300; n++ {
		topo, err := levels.Parse(strconv.Itoa(n))
		if err != nil {
			t.Fatal(err)
		}
		root := levels.Rank(n * 5 / 7)
		for _, r := range []tasks.Request{
			{Coll: tasks.Bcast, Root: root},
			{Coll: tasks.Reduce, Op: tasks.Sum, Root: root},
		} {
			r.Type, r.Count = tasks.Int32, int64(1+n%11)
			plan := tasks.Plan{Shape: tasks.Flat, Segment: tasks.Whole, Window: 1}
			plan = plan.Set("s", tasks.Choice{Submodule: submodules.Circulant, Algorithm: submodules.Blocks, Inner: 8})
			h, err := tasks.Hierarchy(r, topo, plan)
			if err != nil {
				t.Fatal(err)
			}
			progs := make([]*submodules.Program, n)
			for rank := range progs {
				if progs[rank], err = submodules.CompileFor(r, h, plan, levels.Rank(rank), reg); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := check.Programs(progs); err != nil {
				t.Errorf("%v on %d ranks: %v", r, n, err)
			}
		}
	}
}

package tune_test

import (
	"testing"

	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// A search tries the numbers and the inner segments that algorithms name, if they can differ
// from the default, unless it is told which to try.
func TestVariants(t *testing.T) {
	whole := tune.Space{Registry: all.Submodules(), Shapes: []tasks.Shape{tasks.Flat}, Segments: []int64{tasks.Whole}, Windows: []int{1}}
	listed, none := whole, whole
	listed.Numbers, listed.Inners = []int{0, 5}, []int64{0}
	none.Numbers, none.Inners = []int{0}, []int64{0}
	for _, c := range []struct {
		topo  string
		space tune.Space
		plan  string
		want  bool
	}{
		{"16x1", whole, "shape=flat,fs=all,w=1,ib=adapt/kchain//8", true},
		{"16x1", whole, "shape=flat,fs=all,w=1,ib=adapt/kchain/32KiB/8", true},
		{"16x1", whole, "shape=flat,fs=all,w=1,ib=adapt/kchain", true},
		{"16x1", whole, "shape=flat,fs=all,w=1,ib=adapt/kchain//5", false},
		{"16x1", whole, "shape=flat,fs=all,w=1,ib=circulant/blocks/6KiB", true},
		{"16x1", whole, "shape=flat,fs=all,w=1,ib=nbc/linear//2", false},  // takes none
		{"8x1", whole, "shape=flat,fs=all,w=1,ib=adapt/kchain//8", false}, // 7 ranks below the root
		{"16x1", listed, "shape=flat,fs=all,w=1,ib=adapt/kchain//5", true},
		{"16x1", listed, "shape=flat,fs=all,w=1,ib=adapt/kchain//8", false},
		{"16x1", listed, "shape=flat,fs=all,w=1,ib=circulant/blocks/6KiB", false},
		{"16x1", none, "shape=flat,fs=all,w=1,ib=adapt/kchain", true},
		{"16x1", none, "shape=flat,fs=all,w=1,ib=adapt/kchain//8", false},
	} {
		on := tasktest.Topology(t, c.topo)
		got := 0
		for _, one := range c.space.Configurations(bcast(1<<20), on) {
			if !one.Added && one.Plan.String() == c.plan {
				got++
			}
		}
		if got > 1 || (got == 1) != c.want {
			t.Errorf("%s: %s is there %d times, want %v", c.topo, c.plan, got, c.want)
		}
	}
}

// Words of the rule's own plan change nothing when a search is given them.
func TestRuleWithItsOwnWords(t *testing.T) {
	reg := all.Submodules()
	for _, topo := range []string{"64x12", "16x4", "8x1", "1x6"} {
		on := tasktest.Topology(t, topo)
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather} {
			for _, bytes := range []int64{4 << 10, 64 << 10, 1 << 20} {
				r := bcast(bytes)
				r.Coll = coll
				free := tune.Space{Registry: reg}.Rule(r, on)
				for _, key := range free.Keys() {
					word, _ := free.Choice(key)
					with := tune.Space{Registry: reg, Plan: tasks.Plan{}.Set(key, word)}
					if got := with.Rule(r, on); got.String() != free.String() {
						t.Errorf("%v on %s with %s=%v: %v; want %v", r, topo, key, word, got, free)
					}
				}
			}
		}
	}
}

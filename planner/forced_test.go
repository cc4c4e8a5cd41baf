package planner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// What is forced for all collectives is for those that it can do anything of.
func TestForcedForAll(t *testing.T) {
	on := tasktest.Topology(t, "4x2")
	const rule, fails = "", "error"
	for _, test := range []struct {
		forced string
		coll   tasks.Collective
		want   string // in the plan, rule for that without anything forced, or fails
	}{
		{"i=adapt/chain", tasks.Bcast, "i=adapt/chain"},
		{"i=adapt/chain", tasks.Gather, rule},
		{"i=adapt/chain;gather:w=3", tasks.Gather, "w=3,i=adapt/linear"},
		{"gather:i=adapt/chain", tasks.Gather, fails},
		{"gather:i=adapt/chain", tasks.Scatter, rule},
		{"i=adapt/chain;gather:i=nbc/linear", tasks.Gather, "i=nbc/linear"},
		{"fs=4KiB,i=adapt/chain", tasks.Gather, "fs=4KiB,w=8,i=adapt/linear"},
		{"i=adapt/ring", tasks.Bcast, rule},
		{"ig=adapt/chain", tasks.Gather, fails}, // it names a task that the algorithm never does
		{"shape=rsag,i=adapt/ring", tasks.Allreduce, "i=adapt/ring"},
		{"shape=rsag,i=adapt/chain", tasks.Allreduce, fails}, // which does an allreduce, but not in this shape
		{"s=solo/slices", tasks.Bcast, rule},
		{"s=solo/slices", tasks.Reduce, "s=solo/slices"},
		{"s=solo/slices", tasks.Allreduce, fails}, // it does sr, but not sb
		{"i=sm", tasks.Bcast, fails},              // it does a bcast, but not between nodes
	} {
		r := tasktest.Request(test.coll, 4<<16)
		text, err := planner.Explain(r, on, &planner.Options{Plan: test.forced})
		plan, _, _ := strings.Cut(text, "\n  rule")
		switch want, _ := planner.Decide(r, on, nil); {
		case test.want == fails:
			if !errors.Is(err, submodules.ErrUnsupported) {
				t.Errorf("%q for %v: %v, %v; want it unsupported", test.forced, test.coll, plan, err)
			}
		case err != nil:
			t.Errorf("%q for %v: %v", test.forced, test.coll, err)
		case test.want != rule:
			if !strings.Contains(plan, test.want) {
				t.Errorf("%q for %v: %s, want %s in it", test.forced, test.coll, plan, test.want)
			}
		case !strings.Contains(plan, "plan: "+want.String()+"\n") && !strings.HasSuffix(plan, "plan: "+want.String()):
			t.Errorf("%q for %v: %s, want %v", test.forced, test.coll, plan, want)
		}
		left := test.want == rule && !strings.Contains(test.forced, ":") || test.forced == "fs=4KiB,i=adapt/chain"
		if said := strings.Contains(plan, "but for other collectives"); left && !said {
			t.Errorf("%q for %v: %s doesn't say what is left out", test.forced, test.coll, plan)
		}
	}
}

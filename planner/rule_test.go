package planner_test

import (
	"slices"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// The built-in rule chooses for every task that there is, something that can do it,
// and for nothing else.
func TestRuleNamesWhatThereIs(t *testing.T) {
	for _, spec := range []string{"1", "4", "4x1", "4x2", "3x2/rr", "a:3,b:1", "2x2x3"} {
		on, err := levels.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, coll := range tasks.Requestable() {
			for _, shape := range append([]tasks.Shape{0}, tasks.ShapesOf(coll)...) { // 0: the rule's own
				for _, count := range []int64{2, 1 << 18} {
					r := tasks.Request{Coll: coll}
					if coll != tasks.Barrier {
						r.Count, r.Type = count, tasks.Float32
					}
					if r.Reduces() {
						r.Op = tasks.Sum
					}
					checkRule(t, r, on, tasks.Plan{Shape: shape})
				}
			}
		}
	}
}

func checkRule(t *testing.T, r tasks.Request, on *levels.Topology, forced tasks.Plan) {
	t.Helper()
	p, _ := planner.Rule(r, on, forced)
	g, err := tasks.Expand(r, on, p, 0)
	if err != nil {
		if forced.Shape == 0 || len(p.Keys()) > 0 {
			t.Errorf("%v on %v: %v: %v", r, on, p, err)
		}
		return // no such shape here
	}
	if err := all.Submodules().Supports(g); err != nil {
		t.Errorf("%v on %v: %v: %v", r, on, p, err)
	}
	for _, key := range p.Keys() {
		if !slices.ContainsFunc(g.Phases, func(ph tasks.Phase) bool {
			return ph.Kind.String() == key || string(ph.Kind.Symbol) == key
		}) {
			t.Errorf("%v on %v: %v chooses for %s, which there is not", r, on, p, key)
		}
	}
}

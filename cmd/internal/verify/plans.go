package verify

import (
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/tasks"
)

// listPlans returns the given plan, completed as always, or all plans.
func (v *verifying) listPlans(r tasks.Request) ([]tasks.Plan, error) {
	if v.IsGiven("table") || v.IsGiven("plan") && v.Plan != "all" {
		p, err := v.Decide(r, v.on)
		return []tasks.Plan{p}, err
	}
	var all []tasks.Plan
	for _, shape := range tasks.ShapesOf(r.Coll) {
		for _, cut := range listCuts(r) {
			p := tasks.Plan{Shape: shape, Segment: cut.segment, Window: cut.window}
			all = append(all, plans.Combinations{Registry: v.reg, Inner: cut.inner}.Of(r, v.on, p)...)
		}
	}
	return all, nil
}

// cut is a way to cut a message: into segments, and these into inner segments.
type cut struct {
	segment int64
	window  int
	inner   int64 // 0: none
}

// listCuts returns ways to cut a message: not at all, with one segment at a time, and
// with several.
func listCuts(r tasks.Request) []cut {
	all := []cut{{segment: tasks.Whole, window: 1}}
	n, element := r.Bytes(), int64(r.Type.Size())
	if n > element {
		all = append(all,
			cut{tasks.Whole, 1, n / 2},
			cut{segment: max(n/3, element), window: 1},
			cut{max(n/8, element), 3, n / 16},
			cut{max(n/8, element), 2, 0})
	}
	return all
}

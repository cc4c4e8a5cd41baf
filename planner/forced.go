package planner

import (
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// forcedFor returns the forced plan for a request. A shape forced for all collectives
// holds for those that have it. A choice forced for a level and all collectives holds
// for those with a task there that it can do. others lists the words that don't hold for
// this one. A choice that has no task only because a shape was forced beside it stays:
// the two contradict each other, and compiling says so.
func forcedFor(all tasks.Forced, r tasks.Request, t *levels.Topology, reg submodules.Registry) (forced tasks.Plan, others []string) {
	forced = all.For(r.Coll)
	if len(forced.Keys()) == 0 {
		return forced, nil
	}
	base, _ := rule.Choose(r, t, forced)
	var phases []tasks.Phase
	for _, shape := range []tasks.Shape{base.Shape, tasks.Han} {
		if g, err := rule.Outline(r, t, tasks.Plan{Shape: shape, Segment: tasks.Whole, Window: 1, Order: forced.Order}); err == nil {
			phases = append(phases, g.Phases...)
		}
	}
	mine := slices.Clone(all)
	for i := range mine {
		if mine[i].Coll != 0 {
			continue
		}
		for _, key := range mine[i].Plan.Keys() {
			if c, _ := mine[i].Plan.Choice(key); len(key) == 1 && isIdle(reg, c, key[0], phases) {
				mine[i].Plan = mine[i].Plan.Without(key)
				others = append(others, key+"="+c.String())
			}
		}
	}
	return mine.For(r.Coll), others
}

// isIdle reports whether a choice for a level does none of the tasks there.
func isIdle(reg submodules.Registry, c tasks.Choice, symbol byte, phases []tasks.Phase) bool {
	there := func(ph tasks.Phase) bool { return ph.Kind.Symbol == symbol }
	does := func(ph tasks.Phase) bool { return there(ph) && reg.Does(c, ph.Kind.Op) }
	return slices.ContainsFunc(phases, there) && !slices.ContainsFunc(phases, does)
}

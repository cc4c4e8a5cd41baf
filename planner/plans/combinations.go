package plans

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Combinations makes the plans that choose, level by level, one of a registry's
// algorithms. The search for the best plan and tierflow verify both go through
// them.
type Combinations struct {
	Registry submodules.Registry
	Inner    int64 // inner segment of the algorithms that take one; 0: none
}

// Of completes p, which says how the message is cut, with every combination of
// algorithms for the levels that r needs on t. Where p's shape doesn't fit the
// request p alone is returned, as it is.
func (c Combinations) Of(r tasks.Request, t *levels.Topology, p tasks.Plan) []tasks.Plan {
	g, err := rule.Outline(r, t, p)
	if err != nil {
		return []tasks.Plan{p}
	}
	return c.On(g, p)
}

// On is [Combinations.Of] for an outline that p's shape has.
func (c Combinations) On(g *tasks.Graph, p tasks.Plan) []tasks.Plan {
	plans := []tasks.Plan{p}
	for k := range g.On.Depth() {
		kinds := rule.KindsAt(g, k)
		if len(kinds) == 0 {
			continue
		}
		var next []tasks.Plan
		for _, p := range plans {
			next = append(next, c.level(p, kinds, g.On.WithinNodes(k))...)
		}
		plans = next
	}
	return plans
}

// level completes p for one level's kinds, once for each algorithm. Kinds beyond it are done by the first
// able one.
func (c Combinations) level(p tasks.Plan, kinds []tasks.Kind, shared bool) []tasks.Plan {
	var all []tasks.Plan
	for _, s := range c.Registry {
		if s.Reach() == submodules.SharedNode && !shared {
			continue
		}
		for _, a := range s.Algorithms() {
			next, used := p, false
			for _, kind := range kinds {
				choice, ok := c.choice(s, a), a.Does(kind.Op)
				if used = used || ok; !ok {
					choice, ok = c.first(kind.Op, shared)
				}
				if ok {
					next = next.Set(kind.String(), choice)
				}
			}
			if used {
				all = append(all, next)
			}
		}
	}
	return all
}

func (c Combinations) choice(s submodules.Submodule, a submodules.Algorithm) tasks.Choice {
	choice := tasks.Choice{Submodule: s.Name(), Algorithm: a.Name}
	if a.Inner {
		choice.Inner = c.Inner
	}
	return choice
}

// first is the first algorithm that does an operation.
func (c Combinations) first(op tasks.Collective, shared bool) (tasks.Choice, bool) {
	for _, s := range c.Registry {
		for _, a := range s.Algorithms() {
			if a.Does(op) && (shared || s.Reach() == submodules.Anywhere) {
				return c.choice(s, a), true
			}
		}
	}
	return tasks.Choice{}, false
}

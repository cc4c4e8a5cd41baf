package plans

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Combinations makes plans: each chooses one of a registry's algorithms for each level.
// The search for the best plan and tierflow verify both go through
// them.
type Combinations struct {
	Registry submodules.Registry
	Inner    int64 // inner segment of algorithms with one; 0: none
}

// Of completes p, with its shape and segments, by every combination of algorithms for
// the levels that r needs on t. If p's shape doesn't fit the request, p alone is
// returned, as it is.
func (c Combinations) Of(r tasks.Request, t *levels.Topology, p tasks.Plan) []tasks.Plan {
	g, err := builtin.Outline(r, t, p)
	if err != nil {
		return []tasks.Plan{p}
	}
	return c.On(g, p)
}

// On is [Combinations.Of] for an outline of p's shape.
func (c Combinations) On(g *tasks.Graph, p tasks.Plan) []tasks.Plan {
	plans := []tasks.Plan{p}
	for k := range g.On.Depth() {
		kinds := builtin.KindsAt(g, k)
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

// first is the first algorithm for an operation.
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

// Variants lists p with another number for one kind's algorithm, or if inners is true with another inner
// segment. numbers are those to try; nil: the algorithm's own. A number that is not below the ranks of a
// group changes nothing any more: all are below the root then.
func Variants(g *tasks.Graph, p tasks.Plan, reg submodules.Registry, numbers []int, inners bool) (all []tasks.Plan) {
	for _, ph := range g.Phases {
		c, chosen := p.For(ph.Kind)
		a, known := reg.Algorithm(c)
		if !chosen || !known || c.N != 0 {
			continue
		}
		worth := numbers
		if worth == nil {
			worth = a.Number.Worth
		}
		for _, n := range worth {
			if next := c; a.Number.Taken() && n > 0 && n < g.On.Widest(ph.Level) {
				next.N = n
				all = append(all, p.Set(ph.Kind.String(), next))
			}
		}
		if !inners || c.Inner != 0 {
			continue
		}
		for _, inner := range a.Inners {
			next := c
			next.Inner = inner
			all = append(all, p.Set(ph.Kind.String(), next))
		}
	}
	return all
}

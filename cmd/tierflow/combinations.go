package main

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// plansFor is the given plan, completed as always, or all of them.
func (v *verifying) plansFor(r tasks.Request) []tasks.Plan {
	if v.command.Flags().Changed("plan") && v.plan != "all" {
		return []tasks.Plan{decided(v.forced, r, v.on)}
	}
	var all []tasks.Plan
	for _, shape := range tasks.ShapesOf(r.Coll) {
		for _, cut := range cuts(r) {
			p := tasks.Plan{Shape: shape, Segment: cut.segment, Window: cut.window}
			all = append(all, combinations{v.reg, cut.inner}.of(r, v.on, p)...)
		}
	}
	return all
}

// cut is how a message is cut: into segments, and these by algorithms that take
// an inner segment.
type cut struct {
	segment int64
	window  int
	inner   int64 // 0: none
}

// cuts lists ways to cut a message: not at all, with one segment at a time and
// with several.
func cuts(r tasks.Request) []cut {
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

// combinations makes plans that use what a registry has.
type combinations struct {
	reg   submodules.Registry
	inner int64
}

// of completes p with every combination of algorithms for the levels. Where p's
// shape doesn't fit the request it is returned as it is, to be counted.
func (c combinations) of(r tasks.Request, t *levels.Topology, p tasks.Plan) []tasks.Plan {
	h, err := tasks.Hierarchy(r, t, p)
	if err != nil {
		return []tasks.Plan{p}
	}
	g, err := tasks.ExpandOn(tasks.Request{Coll: r.Coll, Type: r.Type, Op: r.Op, Root: r.Root}, h, p, 0)
	if err != nil {
		return []tasks.Plan{p}
	}
	plans := []tasks.Plan{p}
	for k := range h.Depth() {
		var kinds []tasks.Kind
		for _, ph := range g.Phases { // those of all ranks, whatever the count
			if ph.Level == k {
				kinds = append(kinds, ph.Kind)
			}
		}
		if len(kinds) == 0 {
			continue
		}
		var next []tasks.Plan
		for _, p := range plans {
			next = append(next, c.level(p, kinds, h.WithinNodes(k))...)
		}
		plans = next
	}
	return plans
}

// level completes p for one level's kinds, once for each algorithm: those kinds
// that it can't do are done by the first one that can.
func (c combinations) level(p tasks.Plan, kinds []tasks.Kind, shared bool) []tasks.Plan {
	var all []tasks.Plan
	for _, s := range c.reg {
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

func (c combinations) choice(s submodules.Submodule, a submodules.Algorithm) tasks.Choice {
	choice := tasks.Choice{Submodule: s.Name(), Algorithm: a.Name}
	if a.Inner {
		choice.Inner = c.inner
	}
	return choice
}

// first is the first algorithm that does an operation.
func (c combinations) first(op tasks.Collective, shared bool) (tasks.Choice, bool) {
	for _, s := range c.reg {
		for _, a := range s.Algorithms() {
			if a.Does(op) && (shared || s.Reach() == submodules.Anywhere) {
				return c.choice(s, a), true
			}
		}
	}
	return tasks.Choice{}, false
}

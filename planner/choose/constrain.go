package choose

import (
	"slices"

	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/tasks"
)

// open returns the question with nothing forced.
func (q *Question) open() *Question {
	return &Question{Asked: q.Asked, Registry: q.Registry, Links: q.Links}
}

// isNarrowed reports whether a part of the plan is forced.
func (q *Question) isNarrowed() bool { return q.Forced.String() != "" }

// meets returns a plan in the forced words, if it does what they say anyway. A forced choice must be that of
// a task of the plan, unless the collective has no such task in any shape.
func (q *Question) meets(p tasks.Plan) (_ tasks.Plan, ok bool) {
	if !q.isNarrowed() {
		return p, true
	}
	left := q.Forced
	for _, key := range q.Forced.Keys() {
		if !q.isUsed(key, p) {
			return p, false
		}
		mine, _ := q.Forced.Choice(key)
		if its, same := p.Choice(key); same && its == mine {
			left = left.Without(key) // so a choice for a level leaves others for its kinds
		}
	}
	with := left.Over(p)
	same := plans.Named(q.Asked, with, q.Registry).Equal(plans.Named(q.Asked, p, q.Registry))
	return with, same && with.Order == p.Order && with.Eager == p.Eager
}

// isUsed reports whether a plan has a task for a forced choice, or the collective has none in any shape.
func (q *Question) isUsed(key string, p tasks.Plan) bool {
	if q.has(key, p) {
		return true
	}
	return !slices.ContainsFunc(tasks.ShapesOf(q.Request().Coll), func(s tasks.Shape) bool {
		return q.has(key, tasks.Plan{Shape: s, Segment: tasks.Whole, Window: 1, Order: q.Forced.Order})
	})
}

// has reports whether a plan has a task of a kind, or of a level.
func (q *Question) has(key string, p tasks.Plan) bool {
	g, err := q.Outline(p)
	return err == nil && slices.ContainsFunc(g.Phases, func(ph tasks.Phase) bool {
		return key == ph.Kind.String() || key == string(ph.Kind.Symbol)
	})
}

// constrain returns those of some plans that have all forced words once these take the place of their own,
// each once. Plans that can't be compiled so are left out.
func (q *Question) constrain(all []tasks.Plan) (some []tasks.Plan) {
	seen := map[string]bool{}
	for _, p := range all {
		p = q.Forced.Over(p)
		name := plans.Named(q.Asked, p, q.Registry).String()
		if seen[name] {
			continue
		}
		seen[name] = true
		if _, err := q.Fits(p, q.Registry); err == nil && !slices.ContainsFunc(q.Forced.Keys(), func(key string) bool { return !q.isUsed(key, p) }) {
			some = append(some, p)
		}
	}
	return some
}

// completeByRule returns the built-in rule's completion of the forced part. That is the rule's own plan if it
// has all forced words. Else a forced algorithm narrows the choice: the rule completes the words alone and with
// each shape, with the rest chosen as ever, and the cheapest plan on the assumed machine is taken.
func (q *Question) completeByRule() *Ruled {
	base, why := q.Asked.Choose(q.Forced)
	only := &Ruled{q.Forced.Over(base), why}
	if len(q.Forced.Keys()) == 0 || q.Forced.Order != tasks.AnyOrder {
		return only
	}
	free := q.open().rule()
	if p, ok := q.meets(free.plan); ok {
		return &Ruled{p, free.why}
	}
	all := []tasks.Plan{only.plan, free.plan}
	for _, s := range tasks.ShapesOf(q.Request().Coll) {
		if q.Forced.Shape == 0 || q.Forced.Shape == s {
			p, _ := q.Asked.Choose(tasks.Plan{Shape: s, Segment: q.Forced.Segment, Window: q.Forced.Window})
			all = append(all, p)
		}
	}
	if all = q.constrain(all); len(all) == 0 {
		return only // compiling it says why
	}
	best := priced.Cheapest(assumedFor(q.On), q.Asked, all, q.Registry)
	if !best.Equal(only.plan) {
		_, only.why = q.Asked.Choose(tasks.Plan{Shape: best.Shape, Segment: q.Forced.Segment, Window: q.Forced.Window})
	}
	return &Ruled{best, only.why}
}

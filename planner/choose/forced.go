package choose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Forced is forced plans. It is asked first and narrows the question: other choosers'
// answers complete the forced part.
type Forced struct {
	Plans  tasks.Forced
	Origin string // the setting with them
	// Dropped were forced too, before ranks were lost: the ranks left can't run them.
	Dropped tasks.Forced
}

var _ Chooser = Forced{}

// Choose finds the forced part of the question's plan. A shape forced for all collectives
// holds for those with the shape. A choice forced for a level and all collectives holds for
// those with a task for it there. A choice without a task only because of a shape forced
// beside it stays: the two contradict each other, and compiling says so.
func (f Forced) Choose(q *Question) (Answer, error) {
	a := &Narrowed{coll: q.Request().Coll, origin: f.Origin}
	a.plan, a.dropped = f.Plans.For(q.Request().Coll), f.Dropped.For(q.Request().Coll)
	q.Forced, q.ruled, q.prices = a.plan, nil, nil
	if len(a.plan.Keys()) == 0 {
		return a, nil
	}
	phases := q.phases(q.rule().plan.Shape)
	mine := slices.Clone(f.Plans)
	for i := range mine {
		if mine[i].Coll != 0 {
			continue
		}
		for _, key := range mine[i].Plan.Keys() {
			if c, _ := mine[i].Plan.Choice(key); len(key) == 1 && isIdle(q.Registry, c, key[0], phases) {
				mine[i].Plan = mine[i].Plan.Without(key)
				a.others = append(a.others, key+"="+c.String())
			}
		}
	}
	if len(a.others) > 0 {
		a.plan = mine.For(q.Request().Coll)
		q.Forced, q.ruled, q.prices = a.plan, nil, nil
	}
	return a, nil
}

// phases lists those of plans with a shape, and of han.
func (q *Question) phases(shape tasks.Shape) (phases []tasks.Phase) {
	for _, shape := range []tasks.Shape{shape, tasks.Han} {
		if g, err := q.Outline(tasks.Plan{Shape: shape, Segment: tasks.Whole, Window: 1, Order: q.Forced.Order}); err == nil {
			phases = append(phases, g.Phases...)
		}
	}
	return phases
}

// isIdle reports whether a choice for a level does none of the tasks there.
func isIdle(reg submodules.Registry, c tasks.Choice, symbol byte, phases []tasks.Phase) bool {
	there := func(ph tasks.Phase) bool { return ph.Kind.Symbol == symbol }
	does := func(ph tasks.Phase) bool { return there(ph) && reg.Does(c, ph.Kind.Op) }
	return slices.ContainsFunc(phases, there) && !slices.ContainsFunc(phases, does)
}

// Narrowed is the forced part of a plan.
type Narrowed struct {
	plan    tasks.Plan
	dropped tasks.Plan
	others  []string // choices forced for other collectives
	coll    tasks.Collective
	origin  string
}

// Plan returns none: the other choosers complete the forced part.
func (*Narrowed) Plan() (p tasks.Plan, known bool) { return p, false }

// Explain says the forced parts, and by which setting.
func (n *Narrowed) Explain(text *strings.Builder) {
	if f := n.plan.String(); f != "" {
		fmt.Fprintf(text, "  forced by %s: %s\n", n.origin, f)
	}
	if f := n.dropped.String(); f != "" {
		fmt.Fprintf(text, "  forced by %s: %s, but the ranks that are left can't run it\n", n.origin, f)
	}
	for _, choice := range n.others {
		fmt.Fprintf(text, "  forced by %s: %s, but for other collectives: it does no task of %v\n", n.origin, choice, n.coll)
	}
}

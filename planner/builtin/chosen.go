package builtin

import (
	_ "embed" // the built-in rules
	"slices"
	"sync"

	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// Text is the file of the built-in rules.
//
//go:embed builtin.rules
var Text string

// Rules returns the built-in rules. Nobody may change their values.
var Rules = sync.OnceValue(func() *rules.Base {
	b, err := rules.Parse("builtin.rules", Text)
	if err != nil {
		panic("rule: the built-in rules don't parse: " + err.Error())
	}
	return b
})

// Why is the rules behind the parts of a plan.
type Why struct {
	params *rules.Params
	rows   []followed
}

// followed is a rule behind a part of a plan.
type followed struct {
	of   *rules.Base
	leaf *rules.Leaf
	part rules.Part
}

// Lines gives the reasons in the rules of a base for shape and segments.
func (w Why) Lines(of *rules.Base) (all []string) {
	for _, r := range w.rows {
		if r.of != of {
			continue
		}
		p, because := of.Plan(r.leaf, w.params), of.Because(r.leaf, w.params)
		switch r.part {
		case rules.ShapePart:
			all = append(all, "shape="+p.Shape.String()+": "+because)
		case rules.SegmentsPart:
			all = append(all, "fs="+tasks.FormatBytes(p.Segment)+": "+because)
		}
	}
	return all
}

// Because returns the reason of a followed rule.
func (w Why) Because(of *rules.Base, l *rules.Leaf) string { return of.Because(l, w.params) }

// Leaves lists the followed rules of a base.
func (w Why) Leaves(of *rules.Base) (all []*rules.Leaf) {
	for _, r := range w.rows {
		if r.of == of && !slices.Contains(all, r.leaf) {
			all = append(all, r.leaf)
		}
	}
	return all
}

// chooser follows rules for parts of plans: for each part the first base with a decision counts.
type chooser struct {
	params rules.Params
	bases  [2]*rules.Base // maybe nil, and the built-in rules
	why    []followed
}

// decide returns the leaf for a part; nil: no base has one.
func (c *chooser) decide(part rules.Part) (of *rules.Base, l *rules.Leaf) {
	c.params.Part = part
	for _, of = range c.bases {
		if of == nil {
			continue
		}
		if l, _ = of.Decide(&c.params); l != nil && !l.Default {
			return of, l
		}
	}
	return nil, nil
}

// choose completes the forced shape and order.
func (c *chooser) choose(a *Asked, forced tasks.Plan) tasks.Plan {
	p := tasks.Plan{Shape: forced.Shape, Order: forced.Order}
	c.params.Coll = a.request.Coll
	if p.Shape == 0 {
		of, l := c.decide(rules.ShapePart)
		p.Shape = of.Plan(l, &c.params).Shape
		c.why = append(c.why, followed{of, l, rules.ShapePart})
	}
	c.params.Set(rules.Shape, int64(p.Shape))
	p = c.cut(p)
	h, err := a.Hierarchy(p)
	if err != nil {
		return p // a forced shape that doesn't fit; compiling says so
	}
	phases := tasks.Phases(a.request, h, p.Shape)
	for k := range h.Depth() {
		c.params.Set(rules.Inside, rules.Bool(h.WithinNodes(k)))
		p = c.level(p, phases, k)
	}
	return p
}

// cut chooses the segments and the window, maybe by different bases.
func (c *chooser) cut(p tasks.Plan) tasks.Plan {
	c.params.Part = rules.SegmentsPart
	for _, of := range c.bases {
		if of == nil || p.Segment != 0 && p.Window != 0 {
			continue
		}
		l, _ := of.Decide(&c.params)
		if l == nil || l.Default {
			continue
		}
		cut := of.Plan(l, &c.params)
		if p.Segment == 0 {
			p.Segment = cut.Segment
		}
		if p.Window == 0 {
			p.Window = cut.Window
		}
		c.why = append(c.why, followed{of, l, rules.SegmentsPart})
	}
	return p
}

// level chooses for the tasks of a level: in one word if they are done alike.
func (c *chooser) level(p tasks.Plan, phases []tasks.Phase, level int) tasks.Plan {
	var usual tasks.Choice
	first := true
	for _, ph := range phases {
		if ph.Level != level {
			continue
		}
		c.params.Coll = ph.Kind.Op
		of, l := c.decide(rules.TaskPart)
		chosen := of.Choice(l, &c.params)
		if of != c.bases[1] {
			c.why = append(c.why, followed{of, l, rules.TaskPart})
		}
		if first {
			usual, first = chosen, false
			p = p.Set(string(ph.Kind.Symbol), chosen)
		} else if chosen != usual {
			p = p.Set(ph.Kind.String(), chosen)
		}
	}
	return p
}

// Choose is [Choose] for the request.
func (a *Asked) Choose(forced tasks.Plan) (tasks.Plan, Why) {
	return a.ChooseBy(forced, nil, &Facts{a, forced})
}

// ChooseBy is Choose with rules for parts of plans before the built-in ones; nil: none. from
// knows their parameters, at least those of [Facts].
func (a *Asked) ChooseBy(forced tasks.Plan, first *rules.Base, from rules.Source) (tasks.Plan, Why) {
	c := &chooser{params: rules.Params{From: from}, bases: [2]*rules.Base{first, Rules()}, why: make([]followed, 0, 2)}
	p := c.choose(a, forced)
	return p, Why{&c.params, c.why}
}

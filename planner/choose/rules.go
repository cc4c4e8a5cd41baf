package choose

import (
	"fmt"
	"math"
	"strings"

	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// Rules chooses by a file of rules.
type Rules struct {
	*rules.Base
	Machine *Machine // nil: it is not known
}

var _ Chooser = (*Rules)(nil)

// Choose asks the rules. The built-in rule completes their plan.
func (c *Rules) Choose(q *Question) (Answer, error) {
	p, from := q.params(c.Machine)
	a := &Followed{from: c.Base}
	a.leaf, a.steps = c.Trace(p)
	mine := q.Forced
	if a.decides() {
		mine = mine.Over(c.Plan(a.leaf, p))
		a.because = c.Because(a.leaf, p)
	}
	_, parts := c.DecidesParts()
	switch {
	case parts:
		from.Forced = mine
		a.plan, a.why = q.Asked.ChooseBy(mine, c.Base, from)
		a.parts = a.why.Leaves(c.Base)
	case a.decides():
		a.plan, _ = q.Asked.Choose(mine)
	}
	if a.decides() || len(a.parts) > 0 {
		a.plan = mine.Over(a.plan)
		_, a.unfit = q.Fits(a.plan, q.Registry)
	}
	return a, nil
}

// facts are the parameters of rules for a question.
type facts struct {
	builtin.Facts
	links   string
	machine *Machine
}

// params returns the parameters of rules for a question on a machine, and the facts behind them.
func (q *Question) params(m *Machine) (*rules.Params, *facts) {
	from := &facts{builtin.Facts{Asked: q.Asked, Forced: q.Forced}, q.Links, m}
	return &rules.Params{Coll: q.Request().Coll, From: from}, from
}

// Value returns a parameter's value.
func (f *facts) Value(p rules.Param) int64 {
	switch p {
	case rules.Rate, rules.Latency:
		return f.link(p)
	case rules.Cores:
		if !f.machine.isKnown() {
			return rules.Unknown
		}
		if c := f.machine.Machine.Cores; c.PerNode > 0 || c.InAll > 0 {
			return int64(max(c.PerNode, c.InAll/f.On.Nodes()))
		}
		return f.Facts.Value(rules.PerNode)
	}
	return f.Facts.Value(p)
}

// link returns a parameter of the slowest links between nodes: by the machine, or of the rate
// by their name.
func (f *facts) link(p rules.Param) int64 {
	if !f.machine.isKnown() {
		if rate, err := rules.ParseNumber(f.links); err == nil && p == rules.Rate {
			return rate
		}
		return rules.Unknown
	}
	worst := 0.0
	for level := range f.On.Depth() {
		l, err := f.machine.Link(f.On.Level(level))
		if f.On.Domains(level) >= f.On.Nodes() || err != nil {
			continue // inside nodes
		}
		if p == rules.Rate {
			worst = max(worst, l.Byte)
		} else {
			worst = max(worst, l.Latency)
		}
	}
	switch {
	case worst == 0:
		return rules.Unknown
	case p == rules.Rate:
		return int64(math.Round(8e9 / worst))
	}
	return int64(math.Round(worst))
}

// Followed is the answer of rules.
type Followed struct {
	from    *rules.Base
	leaf    *rules.Leaf // nil: nothing
	because string      // with the leaf's numbers
	steps   []rules.Step
	parts   []*rules.Leaf // of rules for parts of the plan
	why     builtin.Why   // of these
	plan    tasks.Plan
	unfit   error // why the plan can't be taken
}

// decides reports whether the rules have a whole plan, or words of one.
func (f *Followed) decides() bool { return f.leaf != nil && !f.leaf.Default }

// Plan returns the rules' plan, if they have one and it fits.
func (f *Followed) Plan() (tasks.Plan, bool) {
	return f.plan, (f.decides() || len(f.parts) > 0) && f.unfit == nil
}

// IsFinal reports whether the rules' plan is taken: whoever wrote them wants it.
func (f *Followed) IsFinal() bool {
	_, known := f.Plan()
	return known
}

// planOrNone returns the plan of f, if there is one; f may be nil.
func (f *Followed) planOrNone() (p tasks.Plan, known bool) {
	if f == nil {
		return p, false
	}
	return f.Plan()
}

// Explain names the line of the decision, and the conditions on the way there.
func (f *Followed) Explain(text *strings.Builder) {
	line := func(l *rules.Leaf, because string) {
		fmt.Fprintf(text, "  rules: %s: %s", f.from.Position(l), l.Text)
		if because != "" {
			fmt.Fprintf(text, ": %s", because)
		}
		text.WriteByte('\n')
	}
	switch {
	case f.leaf == nil && len(f.parts) == 0:
		fmt.Fprintf(text, "  rules: %s decides nothing here\n", f.from.Name)
	case f.leaf == nil:
	case f.leaf.Default:
		fmt.Fprintf(text, "  rules: %s leaves it open: default\n", f.from.Position(f.leaf))
	default:
		line(f.leaf, f.because)
	}
	for _, l := range f.parts {
		line(l, f.why.Because(f.from, l))
	}
	for _, s := range f.steps {
		fmt.Fprintf(text, "  rules: line %d: %v\n", s.Line, s)
	}
	if f.unfit != nil {
		fmt.Fprintf(text, "  rules: unfit, so others decide: %v: %v\n", f.plan, f.unfit)
	}
}

// Compiled chooses by a function made of rules, or written like them.
type Compiled struct {
	Decide  func(p *rules.Params) (plan string, known bool)
	Machine *Machine // nil: it is not known
}

var _ Chooser = (*Compiled)(nil)

// Choose asks the function. The built-in rule completes its plan.
func (c *Compiled) Choose(q *Question) (Answer, error) {
	p, _ := q.params(c.Machine)
	text, known := c.Decide(p)
	a := &Told{text: text, known: known}
	if !known {
		return a, nil
	}
	plan, err := tasks.ParsePlan(text)
	if err != nil {
		return nil, fmt.Errorf("Options.Decide: %w", err)
	}
	mine := q.Forced.Over(plan)
	base, _ := q.Asked.Choose(mine)
	a.plan = mine.Over(base)
	_, a.unfit = q.Fits(a.plan, q.Registry)
	return a, nil
}

// Told is the answer of a compiled function.
type Told struct {
	text  string
	known bool
	plan  tasks.Plan
	unfit error // why the plan can't be taken
}

// Plan returns the function's plan, if it has one and it fits.
func (t *Told) Plan() (tasks.Plan, bool) { return t.plan, t.known && t.unfit == nil }

// IsFinal reports whether the function's plan is taken.
func (t *Told) IsFinal() bool {
	_, known := t.Plan()
	return known
}

// Explain gives the function's words.
func (t *Told) Explain(text *strings.Builder) {
	switch {
	case !t.known:
		text.WriteString("  Options.Decide: leaves it open\n")
	case t.unfit != nil:
		fmt.Fprintf(text, "  Options.Decide: %s: unfit, so others decide: %v\n", t.text, t.unfit)
	default:
		fmt.Fprintf(text, "  Options.Decide: %s\n", t.text)
	}
}

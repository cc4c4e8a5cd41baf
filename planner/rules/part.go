package rules

import (
	"github.com/tierflow/tierflow/tasks"
)

// Part is what a rule decides of a plan.
type Part uint8

// The parts, in the order in which they are decided.
const (
	WholePlan    Part = iota // all words of a plan, as far as a rule has them
	ShapePart                // its shape
	SegmentsPart             // the size of segments, and the window
	TaskPart                 // who does the tasks of an operation, and how
	maxPart
)

// parts has the names of rules for parts, and the words that they choose.
var parts = [maxPart]struct {
	name  string
	words []string
}{
	ShapePart:    {"shape", []string{"shape"}},
	SegmentsPart: {"segments", []string{"fs", "w"}},
	TaskPart:     {"task", []string{"by"}},
}

// String returns the word before the collectives of a rule.
func (p Part) String() string {
	if p >= maxPart {
		return ""
	}
	return parts[p].name
}

// findPart returns the part of a name.
func findPart(name string) (Part, bool) {
	for p := ShapePart; p < maxPart; p++ {
		if parts[p].name == name {
			return p, true
		}
	}
	return 0, false
}

// taskKey is a plan's level for the choice of by=.
const taskKey = "i"

// Choice returns what a leaf of [TaskPart] chooses.
func (b *Base) Choice(l *Leaf, p *Params) tasks.Choice {
	plan := l.plan
	if len(l.holes) > 0 {
		plan = b.Plan(l, p)
	}
	c, _ := plan.Choice(taskKey)
	return c
}

// Fits is the parameter that says whether a collective has a shape, and the groups of ranks can
// have it: fits(lanes).
func Fits(s tasks.Shape) Param { return firstFits + Param(s) - 1 }

// IsFits returns the shape of a parameter that [Fits] returns.
func (p Param) IsFits() (s tasks.Shape, is bool) {
	return tasks.Shape(p-firstFits) + 1, p >= firstFits && p < maxParam
}

// namedValues are the values of a parameter that has names in place of numbers.
func namedValues(u unit) (names []string) {
	switch u {
	case ofShape:
		for _, s := range tasks.Shapes() {
			names = append(names, s.String())
		}
	case ofCollective:
		for _, c := range tasks.Collectives() {
			names = append(names, c.String())
		}
	}
	return names
}

// each goes through the expressions of a body, and through what their names stand for.
func (b *body) each(f func(e *expr)) {
	if b.leaf != nil {
		for _, h := range b.leaf.holes {
			h.is.walk(f)
		}
		for _, r := range b.leaf.reason {
			if r.is != nil {
				r.is.walk(f)
			}
		}
	}
	for _, a := range b.arms {
		a.when.walk(f)
		a.then.each(f)
	}
	if b.orElse != nil {
		b.orElse.each(f)
	}
}

// inTime complains of parameters that aren't known yet when a part is decided.
func (p *parser) inTime(s *statute) (err error) {
	s.body.each(func(e *expr) {
		if since := parameters[e.param].since; e.op == ask && err == nil && s.part < since {
			err = p.errorf(e.at, "%v isn't known here; rules that begin with %s may ask for it", e.param, list(names(since)))
		}
	})
	return err
}

// names lists the parts from one on.
func names(since Part) (all []string) {
	for part := since; part < maxPart; part++ {
		all = append(all, part.String())
	}
	return all
}

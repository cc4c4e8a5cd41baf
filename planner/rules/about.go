package rules

import (
	"errors"
	"slices"

	"github.com/tierflow/tierflow/tasks"
)

// Leaves lists all that rules may decide, in the order of the text.
func (b *Base) Leaves() []*Leaf {
	all := make([]*Leaf, len(b.leaves))
	for i := range b.leaves {
		all[i] = &b.leaves[i]
	}
	slices.SortFunc(all, func(x, y *Leaf) int {
		if x.Line != y.Line {
			return x.Line - y.Line
		}
		return x.Column - y.Column
	})
	return all
}

// Decides reports whether any rule is for whole plans of a collective.
func (b *Base) Decides(c tasks.Collective) bool { return b.roots[WholePlan][c-1] != undecided }

// DecidesParts reports whether any rule is for a part of plans, and where the first one is.
func (b *Base) DecidesParts() (line int, does bool) {
	for _, s := range b.file.statutes {
		if s.part != WholePlan {
			line, _ = b.file.lexer.position(s.body.at)
			return line, true
		}
	}
	return 0, false
}

// Collectives lists those that a leaf of a whole plan may be decided for.
func (b *Base) Collectives(l *Leaf) (all []tasks.Collective) {
	for i, root := range b.roots[WholePlan] {
		if seen := make([]bool, len(b.nodes)); b.leads(root, l, seen) {
			all = append(all, tasks.Collective(i+1))
		}
	}
	return all
}

// leads reports whether a way goes from a node to a leaf.
func (b *Base) leads(at int32, l *Leaf, seen []bool) bool {
	for at >= 0 && !seen[at] {
		seen[at] = true
		if b.leads(b.nodes[at].yes, l, seen) {
			return true
		}
		at = b.nodes[at].no
	}
	return at < 0 && at != undecided && &b.leaves[^at] == l
}

// Bounds lists the numbers of bytes that the rules for whole plans of a collective compare with,
// sorted.
func (b *Base) Bounds(c tasks.Collective) (all []int64) {
	b.walk(c, func(e *expr) {
		if e.op == literal && e.number <= maxBound {
			all = append(all, e.number)
		}
		if e.op == nameOf && e.value.first <= maxBound {
			all = append(all, e.value.first)
		}
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// maxBound bounds what is taken for a number of bytes: larger messages are rare.
const maxBound = 1 << 30

// Computes reports whether numbers of the plan are computed for each request.
func (l *Leaf) Computes() bool { return len(l.holes) > 0 }

// Sketch returns the plan with some number in place of each one that is computed: enough to
// check its words.
func (l *Leaf) Sketch() tasks.Plan { return l.plan }

// CheckPlans asks check about the plan of each leaf. Complaints name the place.
func (b *Base) CheckPlans(check func(tasks.Plan) error) error {
	var all []error
	for _, l := range b.Leaves() {
		if err := check(l.plan); err != nil && !l.Default {
			all = append(all, &Error{b.Name, l.Line, l.Column, err.Error()})
		}
	}
	return errors.Join(all...)
}

// Use is a parameter that rules ask about, in a line.
type Use struct {
	Param Param
	Line  int
}

// Uses lists the parameters asked for in a collective's rules for whole plans, each with its first line.
func (b *Base) Uses(c tasks.Collective) (all []Use) {
	b.walk(c, func(e *expr) {
		if e.op != ask {
			return
		}
		line, _ := b.file.lexer.position(e.at)
		i := slices.IndexFunc(all, func(u Use) bool { return u.Param == e.param })
		if i < 0 {
			all = append(all, Use{e.param, line})
		} else {
			all[i].Line = min(all[i].Line, line)
		}
	})
	slices.SortFunc(all, func(x, y Use) int { return int(x.Param) - int(y.Param) })
	return all
}

// walk goes through all expressions on the ways of a collective to whole plans.
func (b *Base) walk(c tasks.Collective, f func(e *expr)) {
	seen := make([]bool, len(b.nodes))
	todo := []int32{b.roots[WholePlan][c-1]}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		switch {
		case at == undecided || at >= 0 && seen[at]:
		case at < 0:
			for _, h := range b.leaves[^at].holes {
				h.is.walk(f)
			}
		default:
			seen[at] = true
			b.nodes[at].is.walk(f)
			todo = append(todo, b.nodes[at].yes, b.nodes[at].no)
		}
	}
}

package rules

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/tierflow/tierflow/tasks"
)

// Leaves lists all decisions of the rules, in the order of the text.
func (b *Base) Leaves() []*Leaf {
	return slices.SortedFunc(slices.Values(b.leaves), func(x, y *Leaf) int { return cmp.Or(x.Line-y.Line, x.Column-y.Column) })
}

// Decides reports whether any rule is for whole plans of a collective.
func (b *Base) Decides(c tasks.Collective) bool { return b.roots[WholePlan][c-1] != undecided }

// DecidesParts reports whether any rule is for a part of plans, and the line of the first one.
func (b *Base) DecidesParts() (line int, does bool) {
	for _, s := range b.file.statutes {
		if s.part != WholePlan {
			line, _ = b.file.lexer.position(s.body.at)
			return line, true
		}
	}
	return 0, false
}

// Collectives lists those with a way to a leaf of a whole plan.
func (b *Base) Collectives(l *Leaf) (all []tasks.Collective) {
	for i, root := range b.roots[WholePlan] {
		for at := range b.reach(root) {
			if at < 0 && b.leaves[^at] == l {
				all = append(all, tasks.Collective(i+1))
				break
			}
		}
	}
	return all
}

// reach lists the nodes, and as ^index the leaves, on all ways from one of them. Each is there once.
func (b *Base) reach(from int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		nodes, leaves := make([]bool, len(b.nodes)), make([]bool, len(b.leaves))
		for todo := []int32{from}; len(todo) > 0; {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if at == undecided {
				continue
			}
			seen, i := nodes, at
			if at < 0 {
				seen, i = leaves, ^at
			}
			if seen[i] {
				continue
			}
			if seen[i] = true; !yield(at) {
				return
			}
			if at >= 0 {
				todo = append(todo, b.nodes[at].yes, b.nodes[at].no)
			}
		}
	}
}

// Bounds lists the numbers of bytes in the rules for whole plans of a collective, sorted.
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

// maxBound is the largest number taken for one of bytes: larger messages are rare.
const maxBound = 1 << 30

// Computes reports whether numbers of the plan are computed for each request.
func (l *Leaf) Computes() bool { return len(l.holes) > 0 }

// Sketch returns the plan with some number in place of each computed one: enough to check its
// words.
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

// Use is a parameter in a line of rules.
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
	for at := range b.reach(b.roots[WholePlan][c-1]) {
		if at >= 0 {
			b.nodes[at].is.walk(f)
			continue
		}
		for _, h := range b.leaves[^at].holes {
			h.is.walk(f)
		}
	}
}

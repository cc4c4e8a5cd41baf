package rules

import (
	"strings"

	"github.com/tierflow/tierflow/tasks"
)

// holds makes a node's comparison.
func (b *Base) holds(n *node, p *Params) bool {
	if n.way == general {
		return b.eval(n.is, p) == 1
	}
	v := p.Get(n.param)
	switch n.way {
	case within:
		return uint64(v)-uint64(n.least) <= n.span
	case powerOfTwo:
		return v > 0 && v&(v-1) == 0
	}
	with := b.now[n.value].Load()
	is := isMore
	if v == with {
		is = isEqual
	}
	if v < with {
		is = isLess
	}
	return n.holds&is != 0 && v != Unknown
}

// eval returns the value of an expression: [Unknown] if it has an unknown operand.
func (b *Base) eval(e *expr, p *Params) int64 {
	switch e.op {
	case literal:
		return e.number
	case ask:
		return p.Get(e.param)
	case nameOf:
		return b.now[e.value.index].Load()
	case standsIn:
		return b.eval(e.let.is, p)
	case call:
		var x [3]int64
		for i, a := range e.args {
			x[i] = b.eval(a, p)
		}
		return functions[e.calls].of(x)
	case and, or:
		for _, x := range e.args {
			if (b.eval(x, p) == 1) != (e.op == and) {
				return Bool(e.op == or)
			}
		}
		return Bool(e.op == and)
	case not:
		return Bool(b.eval(e.args[0], p) != 1)
	}
	return operators[e.op].of(b.eval(e.args[0], p), b.eval(e.args[1], p))
}

// Plan returns the plan of a leaf. Numbers missing in the text are computed, and brought into the range of
// plans; unknown ones are left open.
func (b *Base) Plan(l *Leaf, p *Params) tasks.Plan {
	plan := l.plan
	for _, h := range l.holes {
		x := b.eval(h.is, p)
		switch h.key {
		case "fs":
			plan.Segment = max(x, 1)
		case "w":
			plan.Window = int(min(max(x, 1), tasks.MaxSegments))
		case "eager":
			plan.Eager = max(x, 0)
		default:
			c, _ := plan.Choice(h.key)
			if h.at == 2 {
				c.Inner = max(x, 0)
			} else {
				c.N = int(min(max(x, 2), tasks.MaxNumber))
			}
			plan = plan.Set(h.key, c)
		}
	}
	return plan
}

// Because returns a leaf's reason, with its computed numbers.
func (b *Base) Because(l *Leaf, p *Params) string {
	var text strings.Builder
	for _, r := range l.reason {
		if r.is == nil {
			text.WriteString(r.text)
		} else {
			text.WriteString(writeNumber(b.eval(r.is, p), r.is.unitOf()))
		}
	}
	return text.String()
}

// taskKey is a plan's level for the choice of by=.
const taskKey = "i"

// Choice returns the choice of a leaf of [TaskPart].
func (b *Base) Choice(l *Leaf, p *Params) tasks.Choice {
	plan := l.plan
	if len(l.holes) > 0 {
		plan = b.Plan(l, p)
	}
	c, _ := plan.Choice(taskKey)
	return c
}

package adapt

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// directReduceScatter: all send all their parts straight away, each to the ranks behind it
// first. A rank keeps the arriving parts, and combines them along the tree of [tasks.Split], as
// soon as both sides of a branch are there. So the order of arrival doesn't matter, and the
// bytes are those of a ring.
//
//	n = 4, rank 2    part 2 of 0  ─┐
//	                           1  ─┴─┐
//	                   its own 2  ─┐ ├─ held
//	                           3  ─┴─┘
func directReduceScatter(e *submodules.Emitter, c *submodules.Call) {
	if c.Alone(e) {
		return
	}
	n := len(c.Group.Ranks)
	out, in := outlets(c.Group.Ranks), inlets(c.Group.Ranks)
	room := largest(c.Parts[c.Me : c.Me+1])
	for p := range pieces(c.Parts) {
		mine := p < len(c.Held)
		got := make([]operand, n) // by member
		for distance := 1; distance < n; distance++ {
			to, from := c.Member(c.Me+distance), c.Member(c.Me-distance)
			if p < len(c.Parts[to]) {
				out[to].send(e, c.Parts[to][p], submodules.None)
			}
			if mine {
				buf := in[from].room(e, room).Cut(0, c.Parts[c.Me][p].Len)
				got[from] = operand{buf, in[from].recv(e, buf, submodules.None), true}
			}
		}
		if !mine {
			continue
		}
		got[c.Me] = operand{at: c.Parts[c.Me][p], step: submodules.None}
		done := combineInOrder(e, got, &c.Held[p]).step
		e.Ready(done)
		for from := range in {
			in[from].noteUse(done)
		}
	}
}

// operand is bytes that are there after a step. Those in scratch may be overwritten.
type operand struct {
	at      tasks.Span
	step    dag.ID
	scratch bool
}

// combineInOrder combines operands of successive members, into dst if it isn't nil.
func combineInOrder(e *submodules.Emitter, all []operand, dst *tasks.Span) operand {
	if len(all) == 1 {
		return all[0]
	}
	mid := tasks.Split(len(all))
	left, right := combineInOrder(e, all[:mid], nil), combineInOrder(e, all[mid:], nil)
	to := left.at
	switch {
	case dst != nil:
		to = *dst
	case !left.scratch:
		to = right.at
	}
	return operand{to, e.Reduce(to, left.at, right.at, left.step, right.step), true}
}

package nbc

import (
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// rounds emits the schedule of one rank: added steps go into the open round, and end closes it.
// An empty round is none.
type rounds struct {
	e     *submodules.Emitter
	gate  dag.ID           // the end of the round before
	open  []dag.ID         // its steps
	turns submodules.Turns // of sends to children
}

// send and recv add moving spans, each in a message.
func (r *rounds) send(to levels.Rank, src ...tasks.Span) {
	for _, s := range src {
		r.open = append(r.open, r.e.Send(to, s, r.gate))
	}
}

func (r *rounds) recv(from levels.Rank, dst ...tasks.Span) {
	for _, s := range dst {
		r.open = append(r.open, r.e.Recv(from, s, r.gate))
	}
}

// sendChild adds a send to a child of a tree; long ones leave in the order of these calls.
func (r *rounds) sendChild(to levels.Rank, src tasks.Span) {
	step := r.e.Send(to, src, r.gate, r.turns.Before())
	r.turns.Put(step, src.Len)
	r.open = append(r.open, step)
}

// reduce adds dst = a ⊕ b.
func (r *rounds) reduce(dst, a, b tasks.Span) {
	r.open = append(r.open, r.e.Reduce(dst, a, b, r.gate))
}

// copy adds dst = src.
func (r *rounds) copy(dst, src tasks.Span) {
	r.open = append(r.open, r.e.Copy(dst, src, r.gate))
}

// end closes the round.
func (r *rounds) end() {
	if len(r.open) > 0 {
		r.gate, r.open = r.e.Join(r.open...), r.open[:0]
	}
}

// part is some bytes of the vector.
type part struct{ off, n int64 }

func (p part) of(s tasks.Span) tasks.Span { return s.Cut(p.off, p.n) }

// halves divides a part by whole elements; the first half has one more if they
// are odd.
func (p part) halves(elem int64) (first, second part) {
	n := (p.n/elem + 1) / 2 * elem
	return part{p.off, n}, part{p.off + n, p.n - n}
}

// join is the part made of two neighbours, in any order.
func (p part) join(q part) part { return part{min(p.off, q.off), p.n + q.n} }

package nbc

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// linearScatter: the leader sends to all in one round.
func linearScatter(r *rounds, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		r.recv(c.Group.Lead(), c.Held...)
		return
	}
	r.keepOwn(c)
	for i, to := range c.Others() {
		r.send(to, c.Parts[i]...)
	}
}

// branch is the parts of a run of places of a tree, packed one after the other.
type branch struct {
	c   *submodules.Call
	lo  int // first place
	n   []int64
	buf tasks.Span
}

// newBranch is the parts of places lo to hi−1, in scratch.
func newBranch(r *rounds, c *submodules.Call, lo, hi int) *branch {
	b := &branch{c: c, lo: lo, n: []int64{0}}
	total := int64(0)
	for v := lo; v < hi; v++ {
		for _, s := range c.Parts[(v+c.Group.Leader)%len(c.Group.Ranks)] {
			total += s.Len
		}
		b.n = append(b.n, total)
	}
	b.buf = r.e.Scratch(total)
	return b
}

// of is the parts of places lo to hi−1.
func (b *branch) of(lo, hi int) tasks.Span {
	from := b.n[lo-b.lo]
	return b.buf.Cut(from, b.n[hi-b.lo]-from)
}

// each calls f with the spans of a member's part and where they are in the branch.
func (b *branch) each(v int, spans []tasks.Span, f func(packed, span tasks.Span)) {
	at := b.of(v, v+1)
	for _, s := range spans {
		f(at.Cut(0, s.Len), s)
		at = at.Cut(s.Len, at.Len-s.Len)
	}
}

// binomialGather: each place packs its part and those of the places below it into
// one message for its parent.
//
//	round 0   1→0   3→2   5→4   7→6
//	round 1   3,2→0       7,6→4
//	round 2   7,6,5,4→0
func binomialGather(r *rounds, c *submodules.Call) {
	place := trees.Binomial(seat(c), len(c.Group.Ranks))
	me := seat(c)
	if me == 0 {
		r.keepOwn(c)
		b := newBranch(r, c, 1, max(1, place.End))
		r.takeChildren(b, place)
		for v := 1; v < place.End; v++ {
			b.each(v, c.Parts[(v+c.Group.Leader)%len(c.Group.Ranks)], r.unpack)
		}
		return
	}
	b := newBranch(r, c, me, place.End)
	b.each(me, c.Held, func(packed, span tasks.Span) { r.unpack(span, packed) })
	r.takeChildren(b, place)
	if s := b.of(me, place.End); s.Len > 0 {
		r.send(at(c, place.Parent), s)
	}
}

// unpack adds dst = src, the other way round than it is packed.
func (r *rounds) unpack(src, dst tasks.Span) {
	r.open = append(r.open, r.e.Copy(dst, src, r.gate))
}

// takeChildren is a round that receives the branches of all children.
func (r *rounds) takeChildren(b *branch, place trees.Place) {
	for i, child := range place.Children {
		if s := b.of(child, end(place, i)); s.Len > 0 {
			r.recv(at(b.c, child), s)
		}
	}
	r.end()
}

// end is the place after the last one below the i-th child.
func end(place trees.Place, i int) int {
	if i+1 < len(place.Children) {
		return place.Children[i+1]
	}
	return place.End
}

// binomialScatter is [binomialGather] backwards.
func binomialScatter(r *rounds, c *submodules.Call) {
	me := seat(c)
	place := trees.Binomial(me, len(c.Group.Ranks))
	var b *branch
	if me == 0 {
		r.keepOwn(c)
		b = newBranch(r, c, 1, max(1, place.End))
		for v := 1; v < place.End; v++ {
			b.each(v, c.Parts[(v+c.Group.Leader)%len(c.Group.Ranks)], func(packed, span tasks.Span) { r.unpack(span, packed) })
		}
	} else {
		b = newBranch(r, c, me, place.End)
		if s := b.of(me, place.End); s.Len > 0 {
			r.recv(at(c, place.Parent), s)
		}
	}
	r.end()
	for i := len(place.Children) - 1; i >= 0; i-- { // the largest branch has the longest way
		child := place.Children[i]
		if s := b.of(child, end(place, i)); s.Len > 0 {
			r.send(at(c, child), s)
		}
	}
	if me != 0 {
		b.each(me, c.Held, r.unpack)
	}
}

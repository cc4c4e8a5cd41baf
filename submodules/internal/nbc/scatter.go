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
		total += tasks.TotalLen(c.Parts[c.Member(v+c.Group.Leader)])
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

// at is the part of place v, in one piece.
func (b *branch) at(v int) []tasks.Span { return []tasks.Span{b.of(v, v+1)} }

// binomialGather: each place packs its part and those of the places below it into
// one message for its parent.
//
//	round 0   1→0   3→2   5→4   7→6
//	round 1   3,2→0       7,6→4
//	round 2   7,6,5,4→0
func binomialGather(r *rounds, c *submodules.Call) {
	place := trees.Binomial(c.Seat(), len(c.Group.Ranks))
	me := c.Seat()
	if me == 0 {
		r.keepOwn(c)
		b := newBranch(r, c, 1, max(1, place.End))
		r.takeChildren(b, place)
		for v := 1; v < place.End; v++ {
			spread(r, b.at(v), c.Parts[c.Member(v+c.Group.Leader)])
		}
		return
	}
	b := newBranch(r, c, me, place.End)
	spread(r, c.Held, b.at(me))
	r.takeChildren(b, place)
	if s := b.of(me, place.End); s.Len > 0 {
		r.send(c.RankAt(place.Parent), s)
	}
}

// takeChildren is the round to receive the branches of all children.
func (r *rounds) takeChildren(b *branch, place trees.Place) {
	for i, child := range place.Children {
		if s := b.of(child, end(place, i)); s.Len > 0 {
			r.recv(b.c.RankAt(child), s)
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
	me := c.Seat()
	place := trees.Binomial(me, len(c.Group.Ranks))
	var b *branch
	if me == 0 {
		r.keepOwn(c)
		b = newBranch(r, c, 1, max(1, place.End))
		for v := 1; v < place.End; v++ {
			spread(r, c.Parts[c.Member(v+c.Group.Leader)], b.at(v))
		}
	} else {
		b = newBranch(r, c, me, place.End)
		if s := b.of(me, place.End); s.Len > 0 {
			r.recv(c.RankAt(place.Parent), s)
		}
	}
	r.end()
	for i := len(place.Children) - 1; i >= 0; i-- { // the largest branch has the longest way
		child := place.Children[i]
		if s := b.of(child, end(place, i)); s.Len > 0 {
			r.sendChild(c.RankAt(child), s)
		}
	}
	if me != 0 {
		spread(r, b.at(me), c.Held)
	}
}

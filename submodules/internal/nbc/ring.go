package nbc

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// ring: the vector has a block per rank. Each block goes once around while all
// add to it, and once more, complete, to all.
//
//	n = 3     rank 0         rank 1         rank 2
//	round 0   sends block 0  sends block 1  sends block 2    and adds its own to the
//	round 2   sends block 2  sends block 0  sends block 1    one it gets, in between
//	round 4   sends block 1  sends block 2  sends block 0    complete from here on
//	round 5   sends block 0  sends block 1  sends block 2
func ring(r *rounds, c *submodules.Call) {
	n := len(c.Group.Ranks)
	next, last := c.Group.Ranks[c.Member(c.Me+1)], c.Group.Ranks[c.Member(c.Me-1)]
	block := func(s tasks.Span, i int) tasks.Span { return s.Shard(c.Member(i), n, c.Elem) }
	room := r.e.Scratch(block(c.Dst, 0).Len)
	src := c.Src
	for i := range n - 1 {
		own, sum := block(c.Src, c.Me-i-1), block(c.Dst, c.Me-i-1)
		in := room.Cut(0, sum.Len)
		r.send(next, block(src, c.Me-i))
		r.recv(last, in)
		r.end()
		combine(r, c, own, in, sum, last)
		r.end()
		src = c.Dst
	}
	for i := range n - 1 {
		r.send(next, block(c.Dst, c.Me+1-i))
		r.recv(last, block(c.Dst, c.Me-i))
		r.end()
	}
}

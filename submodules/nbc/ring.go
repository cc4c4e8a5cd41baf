package nbc

import "github.com/tierflow/tierflow/submodules"

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
	next, last := c.Group.Ranks[(c.Me+1)%n], c.Group.Ranks[(c.Me+n-1)%n]
	in := r.e.Scratch(block(c, 0).n)
	src := c.Src
	for i := range n - 1 {
		get := block(c, c.Me-i-1)
		r.send(next, block(c, c.Me-i).of(src))
		r.recv(last, in.Cut(0, get.n))
		r.end()
		combine(r, c, get.of(c.Src), in.Cut(0, get.n), get.of(c.Dst), last)
		r.end()
		src = c.Dst
	}
	for i := range n - 1 {
		r.send(next, block(c, c.Me+1-i).of(c.Dst))
		r.recv(last, block(c, c.Me-i).of(c.Dst))
		r.end()
	}
}

// block is the i-th of as many as there are ranks, in a circle. The first ones
// have one element more if they don't divide.
func block(c *submodules.Call, i int) part {
	n := int64(len(c.Group.Ranks))
	k := (int64(i)%n + n) % n
	elems := c.Dst.Len / c.Elem
	short, long := elems/n, elems%n
	p := part{(k*short + min(k, long)) * c.Elem, short * c.Elem}
	if k < long {
		p.n += c.Elem
	}
	return p
}

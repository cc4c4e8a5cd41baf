package nbc

import (
	"slices"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// packParts returns scratch for all members' parts, one after the other; by member, like
// Call.Parts.
func packParts(r *rounds, c *submodules.Call) (spans [][]tasks.Span) {
	all, at := r.e.Scratch(tasks.TotalLen(slices.Concat(c.Parts...))), int64(0)
	for _, part := range c.Parts {
		var own []tasks.Span
		for _, s := range part {
			own = append(own, all.Cut(at, s.Len))
			at += s.Len
		}
		spans = append(spans, own)
	}
	return spans
}

// combineParts adds dst = mine ⊕ other's for the spans of some members, the other
// way round if the other is the lower rank.
func (r *rounds) combineParts(dst, mine, other [][]tasks.Span, lower bool) {
	for i := range dst {
		for j, d := range dst[i] {
			a, b := mine[i][j], other[i][j]
			if lower {
				a, b = b, a
			}
			r.reduce(d, a, b)
		}
	}
}

// ringReduceScatter: each part goes once around the ring, from the rank behind its
// own on, and all add to it.
//
//	n = 3     rank 0        rank 1        rank 2
//	round 0   sends part 2  sends part 0  sends part 1   and adds its own to the one it gets
//	round 2   sends part 1  sends part 2  sends part 0   in between
func ringReduceScatter(r *rounds, c *submodules.Call) {
	n := len(c.Group.Ranks)
	next, last := c.Group.Ranks[c.Member(c.Me+1)], c.Group.Ranks[c.Member(c.Me-1)]
	sum := packParts(r, c)
	from := c.Parts
	for i := 1; i < n; i++ {
		out, in := c.Member(c.Me-i), c.Member(c.Me-i-1)
		r.send(next, from[out]...)
		r.recv(last, sum[in]...)
		r.end()
		dst := sum[in]
		if in == c.Me {
			dst = c.Held
		}
		r.combineParts([][]tasks.Span{dst}, c.Parts[in:in+1], sum[in:in+1], true)
		r.end()
		from = sum
	}
}

// pairwiseReduceScatter: each sends every other rank its part in one round, the ranks behind it
// first, and combines the arriving parts in the order of ranks.
func pairwiseReduceScatter(r *rounds, c *submodules.Call) {
	n := len(c.Group.Ranks)
	in := make([][]tasks.Span, n)
	in[c.Me] = c.Parts[c.Me]
	for i := 1; i < n; i++ {
		to, from := c.Member(c.Me+i), c.Member(c.Me-i)
		r.send(c.Group.Ranks[to], c.Parts[to]...)
		for _, s := range c.Held {
			buf := r.e.Scratch(s.Len)
			in[from] = append(in[from], buf)
			r.recv(c.Group.Ranks[from], buf)
		}
	}
	r.end()
	sum := in[0]
	for i := 1; i < n; i++ {
		dst := in[i] // scratch, but for this rank's own input
		if i == c.Me && i < n-1 {
			dst = in[0]
		}
		if i == n-1 {
			dst = c.Held
		}
		r.combineParts([][]tasks.Span{dst}, [][]tasks.Span{sum}, in[i:i+1], false)
		r.end()
		sum = dst
	}
}

// halvingReduceScatter: pairs at half the distance of before exchange the parts of
// each other's half and add them. It needs a power of two of ranks.
//
//	round 0   0↔4  1↔5  2↔6  3↔7    four parts each
//	round 2   0↔2  1↔3  4↔6  5↔7    two
//	round 4   0↔1  2↔3  4↔5  6↔7    one
func halvingReduceScatter(r *rounds, c *submodules.Call) {
	n := len(c.Group.Ranks)
	sum, in := packParts(r, c), packParts(r, c)
	from := c.Parts
	for distance := n / 2; distance > 0; distance /= 2 {
		peer := c.Me ^ distance
		mine, its := c.Me&^(distance-1), peer&^(distance-1)
		r.send(c.Group.Ranks[peer], slices.Concat(from[its:its+distance]...)...)
		r.recv(c.Group.Ranks[peer], slices.Concat(in[mine:mine+distance]...)...)
		r.end()
		dst := sum[mine : mine+distance]
		if distance == 1 {
			dst = [][]tasks.Span{c.Held}
		}
		r.combineParts(dst, from[mine:mine+distance], in[mine:mine+distance], peer < c.Me)
		r.end()
		from = sum
	}
}

// nonOverlapping is a reduce of all parts to the lowest rank, along the binomial
// tree over the ranks as they are numbered, and a scatter from there.
func nonOverlapping(r *rounds, c *submodules.Call) {
	place := trees.Binomial(c.Me, len(c.Group.Ranks))
	sum := c.Parts
	if len(place.Children) > 0 {
		acc, in := packParts(r, c), packParts(r, c)
		for _, child := range place.Children {
			r.recv(c.Group.Ranks[child], slices.Concat(in...)...)
			r.end()
			r.combineParts(acc, sum, in, false)
			r.end()
			sum = acc
		}
	}
	if place.Parent >= 0 {
		r.send(c.Group.Ranks[place.Parent], slices.Concat(sum...)...)
		r.end()
		r.recv(c.Group.Ranks[0], c.Held...)
		return
	}
	for i, to := range c.Group.Ranks[1:] {
		r.send(to, sum[i+1]...)
	}
	for j, s := range c.Held {
		r.copy(s, sum[0][j])
	}
}

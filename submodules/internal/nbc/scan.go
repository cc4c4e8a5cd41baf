package nbc

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
	"github.com/tierflow/tierflow/tasks"
)

// arrival is the place for the values before this rank.
func arrival(r *rounds, c *submodules.Call) tasks.Span {
	if c.ArrivesBelow() {
		return c.Scan.Below
	}
	return r.e.Scratch(c.Dst.Len)
}

// leave adds the results of a scan on a rank, made of the values before it in before. The first
// rank keeps its own.
func leave(r *rounds, c *submodules.Call, before tasks.Span) {
	through := c.Scan.Through
	switch {
	case through.Region == 0:
	case c.Me > 0:
		r.reduce(through, before, c.Src)
	case through != c.Src:
		r.copy(through, c.Src)
	}
	r.end()
	if c.Me > 0 && c.Scan.Below.Region != 0 && c.Scan.Below != before {
		r.copy(c.Scan.Below, before)
		r.end()
	}
}

// linearScan: each rank adds its data to the sum from the one before, and sends the result on.
//
//	round    0     1     2     3     4
//	rank 0   send
//	rank 1   recv  add   send
//	rank 2               recv  add   send
func linearScan(r *rounds, c *submodules.Call) {
	sum := c.Src
	if c.Me > 0 {
		before := arrival(r, c)
		r.recv(c.Group.Ranks[c.Me-1], before)
		r.end()
		if sum = c.Scan.Through; sum.Region == 0 && !c.IsLast() {
			sum = r.e.Scratch(c.Dst.Len)
			r.reduce(sum, before, c.Src)
			r.end()
		}
		leave(r, c, before)
	} else {
		leave(r, c, tasks.Span{})
	}
	if !c.IsLast() {
		r.send(c.Group.Ranks[c.Me+1], sum)
	}
}

// pairwiseScan: each sends its data to all ranks behind it in one round, the farthest first, and
// adds the arriving data in the order of ranks.
func pairwiseScan(r *rounds, c *submodules.Call) {
	for i := len(c.Group.Ranks) - 1; i > c.Me; i-- {
		r.send(c.Group.Ranks[i], c.Src)
	}
	in := make([]tasks.Span, c.Me)
	for i := range in {
		if i == 0 {
			in[i] = arrival(r, c)
		} else {
			in[i] = r.e.Scratch(c.Dst.Len)
		}
		r.recv(c.Group.Ranks[i], in[i])
	}
	r.end()
	for i := 1; i < len(in); i++ {
		r.reduce(in[0], in[0], in[i])
		r.end()
	}
	if len(in) == 0 {
		in = append(in, tasks.Span{})
	}
	leave(r, c, in[0])
}

// recursiveDoublingScan: ranks exchange the sums of their blocks, of twice as many ranks in each
// exchange. A sum from a lower rank also goes before the result.
//
//	round 0   0↔1  2↔3  4↔5     sums of two
//	round 2   0↔2  1↔3          of four; 4 and 5 have no partner
//	round 4   0↔4  1↔5
func recursiveDoublingScan(r *rounds, c *submodules.Call) {
	n, sum := len(c.Group.Ranks), c.Src
	in, own, before := r.e.Scratch(c.Dst.Len), tasks.Span{}, tasks.Span{}
	for distance := 1; distance < n; distance *= 2 {
		peer := c.Me ^ distance
		if peer >= n {
			continue
		}
		r.send(c.Group.Ranks[peer], sum)
		r.recv(c.Group.Ranks[peer], in)
		r.end()
		if meetsLater(c.Me, distance, n) {
			if own.Region == 0 {
				own = r.e.Scratch(c.Dst.Len)
			}
			sum = combine(r, c, sum, in, own, c.Group.Ranks[peer])
			r.end()
		}
		switch {
		case peer > c.Me:
			continue
		case before.Region == 0:
			before = arrival(r, c)
			r.copy(before, in)
		default:
			r.reduce(before, in, before)
		}
		r.end()
	}
	leave(r, c, before)
}

// meetsLater reports whether a rank has a partner at a larger distance.
func meetsLater(me, distance, n int) bool {
	for distance *= 2; distance < n; distance *= 2 {
		if me^distance < n {
			return true
		}
	}
	return false
}

// prefixBy sends the leader's prefix down a tree: a round to receive, one to send it on and to
// put it before the values here.
func prefixBy(shape trees.Shape) lowering {
	return func(r *rounds, c *submodules.Call) {
		place, prefix := shape(c.Seat(), len(c.Group.Ranks)), c.Src
		if place.Parent >= 0 {
			prefix = arrival(r, c)
			r.recv(c.RankAt(place.Parent), prefix)
			r.end()
		}
		for _, child := range place.LargestFirst() {
			r.sendChild(c.RankAt(child), prefix)
		}
		r.open = append(r.open, c.Precede(r.e, prefix, 0, c.Dst.Len, r.gate)...)
		r.end()
	}
}

package nbc

import (
	"slices"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// linearBcast: the leader sends to all in one round.
func linearBcast(r *rounds, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		r.recv(c.Group.Lead(), c.Dst)
		return
	}
	for _, to := range c.Others() {
		r.send(to, c.Dst)
	}
}

// linearReduce: the leader takes the ranks above it upwards, then those below it downwards, and
// combines each on its side: the order of ranks under any leader.
func linearReduce(r *rounds, c *submodules.Call) {
	if c.Me != c.Group.Leader {
		r.send(c.Group.Lead(), c.Src)
		return
	}
	from := slices.Clone(c.Group.Ranks[c.Me+1:])
	for _, below := range slices.Backward(c.Group.Ranks[:c.Me]) {
		from = append(from, below)
	}
	collect(r, c, from)
}

// collect combines this rank's data with other ranks', one after the other; lower ranks' data
// comes in on the left. It returns the place of the result. Two buffers let one arrive while the
// other is used.
//
//	round 0   recv 0
//	round 1   recv 1  reduce 0
//	round 2           reduce 1
func collect(r *rounds, c *submodules.Call, from []levels.Rank) tasks.Span {
	var buf [2]tasks.Span
	for i := range min(len(from), len(buf)) {
		buf[i] = r.e.Scratch(c.Dst.Len)
	}
	sum := c.Src
	for i := range len(from) + 1 {
		if i < len(from) {
			r.recv(from[i], buf[i%2])
		}
		if i > 0 {
			sum = combine(r, c, sum, buf[(i-1)%2], c.Dst, from[i-1])
		}
		r.end()
	}
	return sum
}

// combine adds dst = sum ⊕ other's data, or the other way round if the other is a
// lower rank, and returns dst.
func combine(r *rounds, c *submodules.Call, sum, in, dst tasks.Span, other levels.Rank) tasks.Span {
	if other < c.Group.Ranks[c.Me] {
		r.reduce(dst, in, sum)
	} else {
		r.reduce(dst, sum, in)
	}
	return dst
}

package adapt

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// nobody stands for a rank that isn't there.
const nobody levels.Rank = -1

// seats give a group's ranks their places in a tree, in a circle from first on.
type seats struct {
	c     *submodules.Call
	first int // index of the rank at place 0
	me, n int // place of this rank, number of places
}

func seatsFrom(first int, c *submodules.Call) seats {
	return seats{c, first, c.Member(c.Me - first), len(c.Group.Ranks)}
}

func (s seats) rank(place int) levels.Rank {
	if place < 0 {
		return nobody
	}
	return s.c.Group.Ranks[s.c.Member(place+s.first)]
}

// neighbours are the ranks around one rank of a tree.
type neighbours struct {
	parent   levels.Rank
	children []levels.Rank // in the order of service
	back     levels.Rank   // for a leader elsewhere in the tree: the root, to return a reduction's result
}

func (s seats) neighbours(parent int, children []int) neighbours {
	near := neighbours{parent: s.rank(parent), back: nobody}
	for _, child := range children {
		near.children = append(near.children, s.rank(child))
	}
	return near
}

// bcast: each inner segment comes from the parent and goes to all children, in
// the order given; long ones one after the other.
//
//	time →   0    1    2    3    4
//	inner 0  recv send
//	inner 1       recv send
//	inner 2            recv send
func bcast(e *submodules.Emitter, c *submodules.Call, near neighbours) {
	in, out := inlet{from: near.parent}, fan{to: outlets(near.children)}
	for off, n := range c.Pieces() {
		data, got := c.Dst.Cut(off, n), submodules.None
		if near.parent != nobody {
			got = in.recv(e, data, submodules.None)
			in.noteUse(got)
			e.Ready(got)
		}
		out.send(e, data, got)
	}
	if near.parent == nobody {
		e.ReadyAtStart()
	}
}

// reduce: each inner segment is received from all children at once, combined in the order given,
// and sent to the parent. Those of lower ranks come in on the left of the sum.
//
//	time →   0     1       2       3
//	inner 0  recv… reduce… send
//	inner 1  recv…         reduce… send
func reduce(e *submodules.Emitter, c *submodules.Call, near neighbours) {
	in := inlets(near.children)
	up, back := outlet{to: near.parent}, inlet{from: near.back}
	for off, n := range c.Pieces() {
		sum, dst, last := c.Src.Cut(off, n), c.Dst.Cut(off, n), submodules.None
		for i := range in {
			from := in[i].room(e, n).Cut(0, n) // the first pieces are the largest
			got := in[i].recv(e, from, submodules.None)
			a, b := sum, from
			if in[i].from < c.Group.Ranks[c.Me] {
				a, b = from, sum
			}
			last = e.Reduce(dst, a, b, last, got)
			in[i].noteUse(last)
			sum = dst
		}
		if near.parent != nobody {
			last = up.send(e, sum, last)
		} else if sum != dst {
			e.Copy(dst, sum)
		}
		if near.back != nobody {
			back.noteUse(back.recv(e, dst, last))
		}
	}
}

package adapt

import (
	"slices"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
)

// inOrderReduce combines along a tree over the ranks as they are numbered, under any leader. The
// rank at its top sends the result to the leader. The binomial tree is that of [tasks.Split]:
// the left side of each node combines a power of two of ranks.
//
//	      4 ─ result → leader          0 ─┬─ 1          ((0 1) (2 3)) ((4 5) 6)
//	  ┌───┴───┐                           ├─ 2 ── 3
//	  2       6                           └─ 4 ─┬─ 5
//	┌─┴─┐   ┌─┴─┐                               └─ 6
//	1   3   5   7
//	│
//	0
func inOrderReduce(shape trees.Shape, topOf func(n int) int) lowering {
	return func(e *submodules.Emitter, c *submodules.Call) {
		at := seatsFrom(0, c)
		place := shape(at.me, at.n)
		near := at.neighbours(place.Parent, place.Children)
		if top, lead := topOf(at.n), c.Group.Leader; top != lead {
			switch at.me {
			case top:
				near.parent = at.rank(lead)
			case lead:
				near.back = at.rank(top)
			}
		}
		reduce(e, c, near)
	}
}

// inOrderBcast goes down the binary tree. A leader elsewhere than at its top feeds the top and,
// as it has the data already, its own subtree; nobody feeds the leader.
func inOrderBcast(e *submodules.Emitter, c *submodules.Call) {
	at := seatsFrom(0, c)
	place := trees.InOrder(at.me, at.n)
	if top, lead := trees.Top(at.n), c.Group.Leader; top != lead {
		switch at.me {
		case top:
			place.Parent = lead
		case lead:
			place.Parent = -1
			place.Children = append([]int{top}, place.Children...)
		}
		place.Children = slices.DeleteFunc(place.Children, func(child int) bool { return child == lead })
	}
	bcast(e, c, at.neighbours(place.Parent, place.Children))
}

package adapt

import (
	"slices"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
)

// inOrderReduce combines along the in-order tree over the ranks as they are
// numbered, whoever leads; the rank at its top sends the result to the leader.
//
//	      4 ─ result → leader
//	  ┌───┴───┐
//	  2       6
//	┌─┴─┐   ┌─┴─┐
//	1   3   5   7
//	│
//	0
func inOrderReduce(e *submodules.Emitter, c *submodules.Call) {
	at := seatsFrom(0, c)
	place := trees.InOrder(at.me, at.n)
	near := at.neighbours(place.Parent, place.Children)
	if top, lead := trees.Top(at.n), c.Group.Leader; top != lead {
		switch at.me {
		case top:
			near.parent = at.rank(lead)
		case lead:
			near.back = at.rank(top)
		}
	}
	reduce(e, c, near)
}

// inOrderBinomialReduce combines along the binomial tree over the ranks as they are
// numbered, whoever leads; the lowest sends the result to the leader. That is the
// tree that [tasks.Split] describes: the left side of each node combines a power of
// two of ranks.
//
//	0 ─┬─ 1          ((0 1) (2 3)) ((4 5) 6)
//	   ├─ 2 ── 3
//	   └─ 4 ─┬─ 5
//	         └─ 6
func inOrderBinomialReduce(e *submodules.Emitter, c *submodules.Call) {
	at := seatsFrom(0, c)
	place := trees.Binomial(at.me, at.n)
	near := at.neighbours(place.Parent, place.Children)
	if lead := c.Group.Leader; lead != 0 {
		switch at.me {
		case 0:
			near.parent = at.rank(lead)
		case lead:
			near.back = at.rank(0)
		}
	}
	reduce(e, c, near)
}

// inOrderBcast goes down the same tree. A leader who isn't at its top feeds the
// top and, as it has the data already, its own subtree; nobody feeds the leader.
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

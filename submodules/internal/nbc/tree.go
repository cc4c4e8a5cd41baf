package nbc

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
)

// down is a bcast along a tree: a round to receive, one to send to all children.
func down(shape trees.Shape) lowering {
	return func(r *rounds, c *submodules.Call) {
		place := shape(c.Seat(), len(c.Group.Ranks))
		if place.Parent >= 0 {
			r.recv(c.RankAt(place.Parent), c.Dst)
			r.end()
		}
		for _, child := range place.LargestFirst() {
			r.sendChild(c.RankAt(child), c.Dst)
		}
	}
}

// binomialReduce takes the children in turn, the shallowest first: its subtree is combined
// soonest.
func binomialReduce(r *rounds, c *submodules.Call) {
	place := trees.Binomial(c.Seat(), len(c.Group.Ranks))
	var from []levels.Rank
	for _, child := range place.Children {
		from = append(from, c.RankAt(child))
	}
	sum := collect(r, c, from)
	if place.Parent >= 0 {
		r.send(c.RankAt(place.Parent), sum)
	}
}

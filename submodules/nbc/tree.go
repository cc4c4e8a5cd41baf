package nbc

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
)

// down is a bcast along a tree: a round to receive, one to send to all children.
func down(shape trees.Shape) lowering {
	return func(r *rounds, c *submodules.Call) {
		place := shape(seat(c), len(c.Group.Ranks))
		if place.Parent >= 0 {
			r.recv(at(c, place.Parent), c.Dst)
			r.end()
		}
		for _, child := range place.LargestFirst() {
			r.send(at(c, child), c.Dst)
		}
	}
}

// binomialReduce takes the children in turn, the shallowest first, which has its
// subtree combined soonest.
func binomialReduce(r *rounds, c *submodules.Call) {
	place := trees.Binomial(seat(c), len(c.Group.Ranks))
	var from []levels.Rank
	for _, child := range place.Children {
		from = append(from, at(c, child))
	}
	sum := collect(r, c, from)
	if place.Parent >= 0 {
		r.send(at(c, place.Parent), sum)
	}
}

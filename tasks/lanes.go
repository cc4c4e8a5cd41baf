package tasks

import (
	"cmp"
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// With shape=lanes every rank of another node has one rank here to send to it, its owner. Inside
// the node the owners collect the blocks for their ranks. Then each sends each of its ranks one
// message. This works on any layout, with nodes of any size (Träff, Rougier, EuroMPI/ASIA 2014):
//
//	2x2 ranks     rank 0 has the blocks from > to
//	              0>0 0>1 0>2 0>3
//	sa   inside   0>0 1>0, and of rank 2's 0>2 1>2
//	ia   of all   0>0 1>0 2>0 3>0

// isAmongAll reports whether a phase's only group is all ranks: owners send to their ranks.
func (g *Graph) isAmongAll(at int) bool {
	return g.Plan.Shape == Lanes && g.Request.Exchanges() && at > 0
}

// all is the group of all ranks, at the level of a phase.
func (x *exchange) all(ph Phase) *levels.Group {
	return &levels.Group{Level: ph.Level, Ranks: x.everyone()}
}

// nodeOf lists the ranks that a rank shares its lanes with.
func (x *exchange) nodeOf(rank levels.Rank) []levels.Rank {
	return x.On.Under(rank, x.Phases[len(x.Phases)-1].Level)
}

// layLanes lays out the blocks for this rank's takers, by taker, and returns the bytes.
func (x *exchange) layLanes() int64 {
	node := x.nodeOf(x.Rank)
	if len(x.Phases) < 2 || len(node) == 1 && !x.makesRoom() {
		return 0
	}
	var owned []levels.Rank
	for to, owner := range x.owners(node) {
		if owner == x.Rank && levels.Rank(to) != x.Rank {
			owned = append(owned, levels.Rank(to))
		}
	}
	x.given = x.layPairs(owned, node, true, 0)
	return x.given.end()
}

// owners returns each rank's owner in a node: in its own node the rank itself. Of another node's
// ranks the first belongs to the node's first rank, the second to the second, and so on in turn.
// If blocks differ each owner has about the same bytes. The ranks with most to get are given out
// first, each to the owner with least.
func (x *exchange) owners(node []levels.Rank) []levels.Rank {
	if all, ok := x.lanes[node[0]]; ok {
		return all
	}
	all := make([]levels.Rank, x.On.Topology().Size())
	var others []levels.Rank
	for r := range all {
		rank := levels.Rank(r)
		if _, here := slices.BinarySearch(node, rank); here {
			all[r] = rank
			continue
		}
		others = append(others, rank)
		place, _ := slices.BinarySearch(x.nodeOf(rank), rank)
		all[r] = node[place%len(node)]
	}
	if !x.Request.Matrix.IsZero() {
		x.balance(all, node, others)
	}
	if x.lanes == nil {
		x.lanes = map[levels.Rank][]levels.Rank{}
	}
	x.lanes[node[0]] = all
	return all
}

// balance gives each of others an owner in a node, by the node's bytes for it.
func (x *exchange) balance(owner, node, others []levels.Rank) {
	gets := make([]int64, len(owner))
	for _, to := range others {
		for _, from := range node {
			_, _, n := x.Request.Between(from, to)
			gets[to] += n
		}
	}
	slices.SortStableFunc(others, func(a, b levels.Rank) int { return cmp.Compare(gets[b], gets[a]) })
	load := make([]int64, len(node))
	for _, to := range others {
		least := 0
		for i := range load {
			if load[i] < load[least] {
				least = i
			}
		}
		owner[to] = node[least]
		load[least] += gets[to]
	}
}

// makesRoom reports whether this rank, if it is alone on its node, copies its blocks before it
// sends them. In place, the blocks from a node lie over blocks for several ranks.
func (g *Graph) makesRoom() bool {
	return g.Plan.Shape == Lanes && g.Request.Exchanges() && g.Request.InPlace
}

// toLane is the data from a rank to an owner of its node: for the owner itself, and for its takers.
func (x *exchange) toLane(t *Task, st store, giver, owner levels.Rank) (all []Span) {
	for to, o := range x.owners(x.nodeOf(giver)) {
		if o != owner {
			continue
		}
		if s := x.pairIn(t, st, giver, levels.Rank(to)); s.Len > 0 {
			all = append(all, s)
		}
	}
	return all
}

// betweenLanes is the data from an owner to a rank: all blocks of its node for that rank. Whole blocks of
// neighbours lie side by side on both. A rank that is alone on its node keeps its own block here.
func (x *exchange) betweenLanes(t *Task, st store, owner, taker levels.Rank) (all []Span) {
	node := x.nodeOf(owner)
	if owner == taker && (len(node) > 1 || x.makesRoom()) || owner != taker && slices.Contains(node, taker) || x.owners(node)[taker] != owner {
		return nil
	}
	before := levels.Rank(-2)
	for _, from := range node {
		s := x.pairIn(t, st, from, taker)
		switch {
		case s.Len == 0 && x.Segments > 1:
		case x.isWhole() && before == from-1:
			all[len(all)-1].Len += s.Len
			before = from
		default:
			all = append(all, s)
			before = from
		}
	}
	return slices.DeleteFunc(all, func(s Span) bool { return s.Len == 0 })
}

package tasks

import (
	"cmp"
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// With shape=lanes every rank of another node has one rank here that sends to it, its
// owner. Inside the node the owners collect what their ranks are to get. Then each sends
// each of its ranks one message. That works on any layout, with nodes of any size (Träff,
// Rougier, EuroMPI/ASIA 2014):
//
//	2x2 ranks     rank 0 has the blocks from > to
//	              0>0 0>1 0>2 0>3
//	sa   inside   0>0 1>0, and of rank 2's 0>2 1>2
//	ia   of all   0>0 1>0 2>0 3>0

// isAmongAll reports whether a phase's only group is all ranks: owners send to those that
// they own.
func (g *Graph) isAmongAll(at int) bool {
	return g.Plan.Shape == Lanes && g.Request.Exchanges() && at > 0
}

// all is the group of all ranks, at the level of a phase.
func (g *Graph) all(ph Phase) *levels.Group {
	return &levels.Group{Level: ph.Level, Ranks: g.everyone()}
}

// nodeOf lists the ranks that a rank shares its lanes with.
func (g *Graph) nodeOf(rank levels.Rank) []levels.Rank {
	return g.On.Under(rank, g.Phases[len(g.Phases)-1].Level)
}

// keepLanes lays out what this rank keeps for those that it owns, by taker, and returns
// the bytes.
func (g *Graph) keepLanes() int64 {
	node := g.nodeOf(g.Rank)
	if len(g.Phases) < 2 || len(node) == 1 && !g.makesRoom() {
		return 0
	}
	var owned []levels.Rank
	for to, owner := range g.owners(node) {
		if owner == g.Rank && levels.Rank(to) != g.Rank {
			owned = append(owned, levels.Rank(to))
		}
	}
	g.given = g.keepPairs(owned, node, true, 0)
	return g.given.end()
}

// owners returns for each rank who in a node sends to it: in its own node the rank itself.
// Of another node's ranks the first belongs to the node's first rank, the second to the
// second, and so on in turn. Where blocks differ each has about the same bytes. The ranks
// that get most are given out first, each to the owner that has least.
func (g *Graph) owners(node []levels.Rank) []levels.Rank {
	if all, ok := g.lanes[node[0]]; ok {
		return all
	}
	all := make([]levels.Rank, g.On.Topology().Size())
	var others []levels.Rank
	for r := range all {
		rank := levels.Rank(r)
		if _, here := slices.BinarySearch(node, rank); here {
			all[r] = rank
			continue
		}
		others = append(others, rank)
		place, _ := slices.BinarySearch(g.nodeOf(rank), rank)
		all[r] = node[place%len(node)]
	}
	if !g.Request.Matrix.IsZero() {
		g.balance(all, node, others)
	}
	if g.lanes == nil {
		g.lanes = map[levels.Rank][]levels.Rank{}
	}
	g.lanes[node[0]] = all
	return all
}

// balance gives each of others an owner in a node, by what the node sends it.
func (g *Graph) balance(owner, node, others []levels.Rank) {
	gets := make([]int64, len(owner))
	for _, to := range others {
		for _, from := range node {
			_, _, n := g.Request.Between(from, to)
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

// makesRoom reports whether this rank, if it is alone on its node, copies what it gives
// before it sends it. In place, what comes from a node lies over what goes to several ranks.
func (g *Graph) makesRoom() bool {
	return g.Plan.Shape == Lanes && g.Request.Exchanges() && g.Request.InPlace
}

// toLane is what a rank gives an owner of its node: for the owner itself, and for those
// that it owns.
func (g *Graph) toLane(t *Task, st store, giver, owner levels.Rank) (all []Span) {
	for to, o := range g.owners(g.nodeOf(giver)) {
		if o != owner {
			continue
		}
		if s := g.pairIn(t, st, giver, levels.Rank(to)); s.Len > 0 {
			all = append(all, s)
		}
	}
	return all
}

// betweenLanes is what an owner sends a rank: what its whole node gives that rank. Whole
// blocks of neighbours lie side by side on both. A rank that is alone on its node keeps its
// own block here.
func (g *Graph) betweenLanes(t *Task, st store, owner, taker levels.Rank) (all []Span) {
	node := g.nodeOf(owner)
	if owner == taker && (len(node) > 1 || g.makesRoom()) || owner != taker && slices.Contains(node, taker) || g.owners(node)[taker] != owner {
		return nil
	}
	before := levels.Rank(-2)
	for _, from := range node {
		s := g.pairIn(t, st, from, taker)
		switch {
		case s.Len == 0 && g.Segments > 1:
		case g.isWhole() && before == from-1:
			all[len(all)-1].Len += s.Len
			before = from
		default:
			all = append(all, s)
			before = from
		}
	}
	return slices.DeleteFunc(all, func(s Span) bool { return s.Len == 0 })
}

package price

import (
	"iter"
	"math/bits"
	"slices"
)

// group is ranks with a task in common, and how they speak with each other.
type group struct {
	*link // between nodes, or of a phase inside nodes
	size  int
	ranks int   // of each node, numbered node by node; 1: all others are on other nodes
	near  *link // between ranks of a node; nil if ranks is 1
	close int   // ranks of a node, over whatever links
}

// isInside reports whether all ranks reach each other over near: a flat shape's on one node.
func (g *group) isInside() bool { return g.size <= g.ranks }

// hasWholePairs reports whether ranks 2i and 2i+1 share a node, for all i.
func (g *group) hasWholePairs() bool { return g.ranks > 1 && g.ranks%2 == 0 }

// partners are the others of a rank over one link.
type partners struct {
	*link
	count float64
	share float64 // messages on a node's wire at the same time; 0: they use none
}

// others returns the partners of a rank, on other nodes first. So many groups do the same at the same
// time.
func (g *group) others(lanes float64) (all []partners) {
	inside := min(g.ranks, g.size) - 1
	if others := g.size - 1 - inside; others > 0 {
		all = append(all, partners{g.link, float64(others), lanes * float64(g.ranks)})
	}
	if inside > 0 {
		all = append(all, partners{g.near, float64(inside), 0})
	}
	return all
}

// countPassed returns how many messages between such pairs of ranks the busiest node passes on to
// others, or hears from them.
func (g *group) countPassed(pairs iter.Seq2[int, int]) int {
	passed, heard := make([]int, g.size/g.ranks+1), make([]int, g.size/g.ranks+1)
	for from, to := range pairs {
		if from, to := from/g.ranks, to/g.ranks; from != to {
			passed[from]++
			heard[to]++
		}
	}
	return max(slices.Max(passed), slices.Max(heard))
}

// log2 returns how many times a number is halved until it is 1, rounded up.
func log2(n int) int { return bits.Len(uint(max(n, 1) - 1)) }

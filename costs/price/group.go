package price

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// group is ranks that do a task together, and how they speak with each other.
type group struct {
	*link
	size  int
	lead  float64 // goes without credit, bytes
	ranks int     // of each node, numbered node by node; 1: all others are on other nodes
	near  *link   // between ranks of a node; nil if ranks is 1
	close int     // ranks of a node, over whatever links
	early float64 // goes without credit between them, bytes
}

// passed returns how many messages, of those between such pairs of ranks, the busiest node passes on to
// others, or hears from them.
func (g *group) passed(pairs iter.Seq2[int, int]) int {
	passed, heard := make([]int, g.size/g.ranks+1), make([]int, g.size/g.ranks+1)
	for from, to := range pairs {
		if from, to := from/g.ranks, to/g.ranks; from != to {
			passed[from]++
			heard[to]++
		}
	}
	return max(slices.Max(passed), slices.Max(heard))
}

// goesWhole reports whether an algorithm takes a message of n bytes in one piece.
func goesWhole(c tasks.Choice, n float64) bool {
	return c.Inner <= 0 || float64(c.Inner) >= n || c.Algorithm == submodules.Blocks
}

// or returns a number, or the usual one if it is 0.
func or(number, usual int) int {
	if number == 0 {
		return usual
	}
	return number
}

// log2 returns how many times a number is halved until it is 1, rounded up.
func log2(n int) int { return bits.Len(uint(max(n, 1) - 1)) }

package price

import (
	"cmp"
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

// way is how a task is done.
type way struct {
	submodules.Traffic
	hand   submodules.Hand
	number int     // the plan's, or else the algorithm's usual one; 0: it takes none
	inner  float64 // of a piece, bytes; 0: messages aren't cut
}

// way returns that of a plan for a kind of task. It is false where no algorithm does so.
func (p *Pricer) way(plan tasks.Plan, kind tasks.Kind) (w way, ok bool) {
	c, _ := plan.For(kind)
	a, ok := p.registry.Row(c, kind.Op)
	if !ok || c.Inner > 0 && !a.Inner || c.N > 0 && !a.Number.Taken() {
		return w, false
	}
	return way{a.Traffic[kind.Op], a.Handed, cmp.Or(c.N, a.Number.Usual), float64(c.Inner)}, true
}

// goesWhole reports whether a message of n bytes goes in one piece, or its pieces' ways have a form.
func (w *way) goesWhole(n float64) bool {
	return w.inner <= 0 || w.inner >= n || w.Schedule == submodules.CirculantGraph
}

// log2 returns how many times a number is halved until it is 1, rounded up.
func log2(n int) int { return bits.Len(uint(max(n, 1) - 1)) }

package tasks

import (
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// Parts is where, on this rank, the parts of a Gather or Allgather task lie, by
// index in the task's group: those of the ranks that a member speaks for. Each is
// a list of runs, as segments cut through all blocks; runs have equal lengths on
// all ranks. It is nil on a rank that stores none.
//
//	blocks       0     1     2     3         member 0 speaks for ranks 0, 1
//	segment 1   -xx-  -xx-  -yy-  -yy-       member 1 speaks for ranks 2, 3
func (g *Graph) Parts(t *Task) [][]Span {
	if t.Dst.Region == Send {
		return nil
	}
	all := make([][]Span, len(t.Group.Ranks))
	for i, r := range t.Group.Ranks {
		all[i] = g.runs(t, g.On.Under(r, int(t.Level)))
	}
	return all
}

// Runs is where all blocks' parts of a Bcast task lie, of a request that leaves
// blocks on all ranks.
func (g *Graph) Runs(t *Task) []Span {
	all := make([]levels.Rank, g.On.Topology().Size())
	for r := range all {
		all[r] = levels.Rank(r)
	}
	return g.runs(t, all)
}

// runs is where the blocks of some ranks lie: in the receive buffer at their
// places, in scratch one after the other. Whole blocks of neighbours are one run.
func (g *Graph) runs(t *Task, ranks []levels.Rank) []Span {
	var all []Span
	whole := t.Dst.Len == g.Request.Stride()
	for i, r := range ranks {
		if whole && i > 0 && ranks[i-1] == r-1 {
			all[len(all)-1].Len += t.Dst.Len
			continue
		}
		all = append(all, g.blockOf(t.Dst, r))
	}
	return all
}

// blockOf is a rank's part where the parts begin at the given place.
func (g *Graph) blockOf(first Span, r levels.Rank) Span {
	if first.Region == Scratch {
		first.Off += int64(g.position(r)) * first.Len
	} else {
		first.Off += int64(r) * g.Request.Stride()
	}
	return first
}

// position is a rank's place among those that this rank stores blocks of.
func (g *Graph) position(r levels.Rank) int {
	i, _ := slices.BinarySearch(g.stored, r)
	return i
}

// stores lists the ranks that one rank of a Gather keeps blocks of on their way to
// the root: those of all groups that it leads.
func (g *Graph) stores() []levels.Rank {
	for k := g.On.Depth() - 1; k >= 0; k-- {
		if g.On.Group(g.Rank, k) != nil {
			return g.On.Under(g.Rank, k)
		}
	}
	return nil
}

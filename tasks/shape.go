package tasks

import "fmt"

// Shape chooses how a request is expanded into tasks.
type Shape uint8

// The shapes.
const (
	_           Shape = iota
	Flat              // one group of all ranks, no hierarchy
	Han               // reduce and bcast between nodes, dataflow inside a bounded window
	HanLockstep       // han with the paper's stages: one ends on a rank before its next begins
	Rotate            // han, the root between nodes moving on with each segment
	AR                // one allreduce between nodes in place of reduce and bcast
	RSAG              // reduce-scatter and allgather between nodes in place of reduce and bcast
	Lanes             // reduce-scatter inside nodes, every local rank an allreduce of its shard between nodes, allgather inside
	SAG               // scatter and allgather between nodes in place of a bcast
	FlatAR            // flat, by one allreduce
	FlatRSAG          // flat, by a reduce-scatter and an allgather
	FlatSAG           // flat, by a scatter and an allgather
	maxShape
)

// shapes holds for each shape its name in plans, whether all collectives have it or
// only those with it in their row, one line of explanation, and its origin.
var shapes = [maxShape]struct {
	name        string
	common      bool
	doc, source string
}{
	Flat:        {"flat", true, "one group of all ranks, which knows no nodes", "coll/tuned, which has no hierarchy"},
	Han:         {"han", true, "segments flow through the levels, each as soon as it can", "HAN, III, without its stages"},
	HanLockstep: {"han-lockstep", true, "segments go through the levels in stages: one ends on a rank before its next begins", "HAN, III"},
	Rotate:      {"rotate", false, "han whose root between nodes moves on with each segment", "this project"},
	AR:          {"ar", false, "one allreduce between nodes in place of reduce and bcast", "MPICH2's hierarchical collectives, EuroPVM/MPI 2009"},
	RSAG:        {"rsag", false, "reduce-scatter and allgather between nodes in place of reduce and bcast", "Rabenseifner, ICCS 2004; Thakur, Rabenseifner, Gropp, IJHPCA 2005"},
	Lanes: {
		"lanes", false,
		"reduce-scatter inside nodes, every local rank an allreduce of its shard between nodes, allgather inside; " +
			"an alltoall inside nodes, then every local rank sends its share of the other nodes' ranks one message each",
		"Träff, Hunold, full-lane collectives, CLUSTER 2020; NCCL works alike",
	},
	SAG:      {"sag", false, "scatter and allgather between nodes in place of a bcast", "van de Geijn et al., SHPCC 1994; Thakur, Rabenseifner, Gropp, IJHPCA 2005"},
	FlatAR:   {"flat-ar", false, "one allreduce of all ranks, which knows no nodes", "coll/tuned recursive doubling, ring and Rabenseifner; MPICH"},
	FlatRSAG: {"flat-rsag", false, "reduce-scatter and allgather of all ranks, which know no nodes", "Thakur, Rabenseifner, Gropp, IJHPCA 2005; MPICH reduce_scatter_allgather"},
	FlatSAG:  {"flat-sag", false, "scatter and allgather of all ranks, which know no nodes", "coll/tuned scatter_allgather; MPICH"},
}

// IsFlat reports whether a shape knows no nodes: all ranks are one group.
func (s Shape) IsFlat() bool {
	return s == Flat || s == FlatAR || s == FlatRSAG || s == FlatSAG
}

// String is the shape's name in plans.
func (s Shape) String() string {
	if s == 0 || s >= maxShape {
		return fmt.Sprintf("Shape(%d)", uint8(s))
	}
	return shapes[s].name
}

// Doc describes it in one line.
func (s Shape) Doc() string {
	if s >= maxShape {
		return ""
	}
	return shapes[s].doc
}

// Source is its paper or system.
func (s Shape) Source() string {
	if s >= maxShape {
		return ""
	}
	return shapes[s].source
}

// Shapes lists the shapes.
func Shapes() []Shape {
	all := make([]Shape, 0, maxShape-1)
	for s := Flat; s < maxShape; s++ {
		all = append(all, s)
	}
	return all
}

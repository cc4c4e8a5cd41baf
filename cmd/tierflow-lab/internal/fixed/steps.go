package fixed

import "math"

// algorithm is Open MPI's name of one.
type algorithm string

// The algorithms of Open MPI's tables.
const (
	binary            algorithm = "binary"
	binomial          algorithm = "binomial"
	bruck             algorithm = "bruck"
	butterfly         algorithm = "butterfly"
	chain             algorithm = "chain"
	inOrderBinary     algorithm = "in-order_binary"
	knomial           algorithm = "knomial"
	linear            algorithm = "linear"
	linearNB          algorithm = "linear_nb"
	linearSync        algorithm = "linear_sync"
	modifiedBruck     algorithm = "modified_bruck"
	neighbor          algorithm = "neighbor"
	nonOverlapping    algorithm = "nonoverlapping"
	pairwise          algorithm = "pairwise"
	pipeline          algorithm = "pipeline"
	rabenseifner      algorithm = "rabenseifner"
	recursiveDoubling algorithm = "recursive_doubling"
	recursiveHalving  algorithm = "recursive_halving"
	ring              algorithm = "ring"
	scatterAllgather  algorithm = "scatter_allgather"
	segmentedRing     algorithm = "segmented_ring"
	splitBinary       algorithm = "split_binary_tree"
	twoProc           algorithm = "two_proc"
)

// rest bounds the bytes of a table's last step, anyRanks the ranks of its last row.
const (
	rest     = math.MaxInt64
	anyRanks = math.MaxInt
)

// decisions are a table: the first row with more ranks than there are, and in it the first
// step with more bytes than there are.
type decisions []struct {
	below int // ranks
	steps []step
}

// step is an algorithm for messages of fewer bytes.
type step struct {
	below int64
	use   algorithm
}

// look returns the algorithm for so many ranks and bytes.
func (d decisions) look(ranks int, bytes int64) algorithm {
	for _, row := range d {
		if ranks >= row.below {
			continue
		}
		for _, s := range row.steps {
			if bytes < s.below || s.below == rest {
				return s.use
			}
		}
	}
	return linear // not reached: the last row and its last step have no bounds
}

package rule

import (
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Sizes of segments, bytes, as the built-in rules have them. Package tune searches around them.
const (
	InsideSegment = 128 << 10 // inside a node: a segment stays in a core's cache
	ChainMost     = 64 << 10  // between nodes: larger segments only delay the pipeline
	ChainLeast    = 16 << 10
)

// Limits that the built-in rules have too, ranks and nodes.
const (
	mostPeers  = 8 // ranks of a node that all exchange with all
	shortChain = 4 // nodes that are a short chain or ring
	fewInside  = 4 // ranks of a node, on average: from here on each takes a share of what one would do alone
)

// Packed is [rules.Packed].
func Packed(n int64) int64 { return rules.Packed(n) }

func adapt(algorithm string) tasks.Choice {
	return tasks.Choice{Submodule: submodules.Adapt, Algorithm: algorithm}
}

func nbc(algorithm string) tasks.Choice {
	return tasks.Choice{Submodule: submodules.NBC, Algorithm: algorithm}
}

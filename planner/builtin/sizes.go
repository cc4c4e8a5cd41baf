package builtin

import "github.com/tierflow/tierflow/planner/rules"

// Sizes of segments, bytes, as the built-in rules have them. Package tune searches around them.
const (
	InsideSegment = 128 << 10 // inside a node: a segment stays in a core's cache
	ChainMost     = 64 << 10  // between nodes: larger segments only delay the pipeline
	ChainLeast    = 16 << 10
)

// Limits in the built-in rules too, ranks and nodes.
const (
	mostPeers  = 8 // ranks of a node in an exchange of all with all
	shortChain = 4 // nodes in a short chain or ring
	fewInside  = 4 // ranks of a node, on average: from here on each takes a share of one rank's work
)

// Packed is [rules.Packed].
func Packed(n int64) int64 { return rules.Packed(n) }

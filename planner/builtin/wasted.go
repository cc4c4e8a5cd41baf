package builtin

import (
	"fmt"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Limits of plans worth a look.
const (
	CutFrom     = 16 << 10  // bytes, of all blocks: smaller messages are latency, and cutting them adds some
	LinearRanks = 16        // a root that feeds more one by one is the bottleneck
	SoloFrom    = 512 << 10 // bytes of a segment: below, two copies through slots cost less between processes than the setup of one (HAN, III-C)
)

// Wasted says why a plan for so many ranks is hardly worth a measurement, by its choice c for one
// operation in groups of so many ranks at most. moves are the traits of c's
// algorithm. Empty: it may be worth one. Searches with heuristics leave such plans out.
func Wasted(r tasks.Request, ranks int, p tasks.Plan, op tasks.Collective, c tasks.Choice, moves submodules.Traits, group int) string {
	bytes := max(r.Bytes(), 1)
	segment := min(p.Segment, bytes)
	pieces := (bytes + segment - 1) / segment
	if pieces > 1 && r.AllBytes(ranks) <= CutFrom {
		return "message too small to cut: at most " + tasks.FormatBytes(CutFrom) + " is latency"
	}
	if c.Inner > 0 {
		pieces *= (segment + c.Inner - 1) / c.Inner
	}
	switch t := moves.Traffic[op]; {
	case t.Rounds == submodules.Others && t.Partners == submodules.Neighbours && op.IsRooted() && group > shortChain && pieces < int64(group):
		return fmt.Sprintf("too few pieces to fill a chain: %d for %d ranks", pieces, group)
	case t.Partners == submodules.Others && group > LinearRanks && !blocksOnce(op):
		return fmt.Sprintf("group too large for messages to each: %d ranks", group)
	}
	return ""
}

// blocksOnce reports whether ranks that speak with all others send each block of an operation once,
// straight to its place. In other operations they send some several times.
func blocksOnce(op tasks.Collective) bool {
	return op == tasks.Gather || op.Scatters()
}

// TreeInside reports whether c is one of the rule's trees of messages inside full nodes: a leader that
// speaks with all of its ranks through shared memory would be the bottleneck.
func TreeInside(op tasks.Collective, c tasks.Choice, ranks, nodes int) bool {
	switch op {
	case tasks.Bcast, tasks.Reduce:
		return c == tasks.Choice{Submodule: submodules.Adapt, Algorithm: submodules.Binomial} && ranks >= fewInside*nodes
	case tasks.Gather, tasks.Scatter:
		return c == tasks.Choice{Submodule: submodules.NBC, Algorithm: submodules.Binomial} && ranks > mostPeers*nodes
	default:
		return false
	}
}

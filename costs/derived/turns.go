package derived

import (
	"math/bits"

	"github.com/tierflow/tierflow/submodules/trees"
)

// Segments that leave in turns ([submodules.TakesTurns]) take a place with k children k messages each, in
// place of γ(k+1): the first child has its own after one message, the last one after k. So a row of places
// takes
//
//	Σ p + (n−1)·max k
//
// where p is which of its parent's children a place is, in the order of service, from 1 on. No place has
// more children than the root, so the max is the root's.

// linearInTurns: all right below the root, up to [trees.MaxFan]; beyond them a second row.
//
//	n·(P−1)
func linearInTurns(ranks int, n float64, _ Gamma) float64 {
	return fanInTurns(ranks, trees.MaxFan, trees.MaxFan, n)
}

// kchainInTurns: the root feeds [trees.Chains] chains.
func kchainInTurns(ranks int, n float64, _ Gamma) float64 {
	return fanInTurns(ranks, trees.Chains, 1, n)
}

// binaryInTurns: two children of each place.
func binaryInTurns(ranks int, n float64, _ Gamma) float64 { return fanInTurns(ranks, 2, 2, n) }

// binomialInTurns: the root has L = ⌈log2 P⌉ children. The i-th has a tree of 2^(L−i) places below it and takes
// i + (L−i) messages, whichever it is; that of the tree's rest no more.
//
//	n·L
func binomialInTurns(ranks int, n float64, _ Gamma) float64 {
	return n * float64(bits.Len(uint(ranks-1)))
}

// fanInTurns is the longest path of a tree with up to top children of the root and fan of each other place.
func fanInTurns(ranks, top, fan int, n float64) float64 {
	return turnsBelow(ranks, top, fan, 0) + (n-1)*float64(min(top, ranks-1))
}

// turnsBelow is Σ p of the longest path in a tree of size places. Each place has so many messages to send after
// those to its children. Children's trees have one of two sizes, the larger first, so the last child of each size
// has the longest path.
func turnsBelow(size, top, fan, more int) float64 {
	children := min(top, size-1)
	longest := float64(children + more)
	if children == 0 {
		return longest
	}
	short, larger := (size-1)/children, (size-1)%children
	longest = max(longest, float64(children)+turnsBelow(short, fan, fan, more))
	if larger > 0 {
		longest = max(longest, float64(larger)+turnsBelow(short+1, fan, fan, more))
	}
	return longest
}

// splitInTurns: half of the message goes down each side of a binary tree, and n counts the segments of a half. The
// root's two sides have no turns between them, so it sends bursts of two. Other places send to
// their partner after their children. If P is even, the last place on the left has no partner, and gets its
// n segments from the root in turns with those of the right side: n of the root's 3·n go alone. Near:
// a place that hears its parent and its partner at the same time may be later.
//
//	γ(3) + Σ p + 1 + (n−1)·max(γ(3), k), k = the children of a side's first place and its partner
func splitInTurns(ranks int, n float64, g Gamma) float64 {
	if ranks == 2 {
		return 2 * n // both halves go to one rank
	}
	left := trees.Left(ranks) // the larger side
	each := max(g.Of(3), float64(min(2, left-1)+1))
	longest := g.Of(3) + turnsBelow(left, 2, 2, 1) + (n-1)*each
	if 2*left == ranks {
		longest = max(longest, n*(g.Of(3)+1))
	}
	return longest
}

package tasks

import (
	"math/bits"

	"github.com/tierflow/tierflow/levels"
)

// merge is a node of the tree over ranks: the result of ranks lo to mid−1 is combined with that
// of mid to hi−1.
type merge struct{ lo, mid, hi levels.Rank }

// Split is how many of n operands the left side of the in-order binary tree combines: the
// largest power of two below n. Reducing along this tree gives the same bits under any division
// of the work. n is at least 2.
func Split(n int) int { return 1 << (bits.Len(uint(n-1)) - 1) }

// wholeSubtrees reports whether reducing group by group, each along its own tree,
// is reducing along the tree over all ranks.
func wholeSubtrees(h *levels.Hierarchy) bool {
	if !h.Ordered() {
		return false
	}
	n := h.Topology().Size()
	whole := map[merge]bool{}
	merges(bounds(n), func(m merge) { whole[m] = true })
	same := true
	for k := range h.Depth() {
		for _, g := range h.Groups(k) {
			ends := make([]levels.Rank, 0, len(g.Ranks)+1)
			for _, r := range g.Ranks {
				under := h.Under(r, k)
				if len(ends) == 0 {
					ends = append(ends, under[0])
				}
				ends = append(ends, under[len(under)-1]+1)
			}
			merges(ends, func(m merge) { same = same && whole[m] })
		}
	}
	return same
}

// bounds are those of n single ranks.
func bounds(n int) []levels.Rank {
	all := make([]levels.Rank, n+1)
	for r := range all {
		all[r] = levels.Rank(r)
	}
	return all
}

// merges calls f for all nodes of the tree over operands between bounds.
func merges(bounds []levels.Rank, f func(merge)) {
	n := len(bounds) - 1
	if n < 2 {
		return
	}
	mid := Split(n)
	merges(bounds[:mid+1], f)
	merges(bounds[mid:], f)
	f(merge{bounds[0], bounds[mid], bounds[n]})
}

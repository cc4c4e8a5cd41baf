package adapt

import (
	"fmt"
	"slices"
	"testing"
)

// TestTrees: parents and children agree, everybody hangs below the root, and a
// subtree is a run of ranks: what keeps reductions in rank order.
func TestTrees(t *testing.T) {
	for _, algo := range trees {
		for n := 1; n <= 33; n++ {
			t.Run(fmt.Sprintf("%s/n=%d", algo.name, n), func(t *testing.T) {
				for v := range n {
					at := algo.make(v, n)
					if (v == 0) != (at.parent < 0) || at.parent >= v {
						t.Fatalf("parent of %d is %d", v, at.parent)
					}
					if v > 0 && !slices.Contains(algo.make(at.parent, n).children, v) {
						t.Fatalf("%d is no child of its parent %d", v, at.parent)
					}
				}
				if end := subtree(t, algo.make, 0, n); end != n {
					t.Fatalf("the root's tree is the ranks below %d", end)
				}
			})
		}
	}
}

// subtree returns the rank after the last one of v's tree, having seen that each
// child's tree begins where the one before ends.
func subtree(t *testing.T, make func(v, n int) tree, v, n int) int {
	end := v + 1
	for _, child := range make(v, n).children {
		if child != end {
			t.Fatalf("%d: the tree of child %d should begin at %d", v, child, end)
		}
		end = subtree(t, make, child, n)
	}
	return end
}

// TestDepths is what tells the trees apart: steps on the longest way down, and
// how many ranks the root feeds.
func TestDepths(t *testing.T) {
	depth := func(make func(v, n int) tree, v, n int) (d int) {
		for p := make(v, n).parent; p >= 0; p = make(p, n).parent {
			d++
		}
		return d
	}
	for _, tc := range []struct {
		name              string
		make              func(v, n int) tree
		n, deepest, feeds int
	}{
		{"chain", chain, 8, 7, 1},
		{"binomial", binomial, 8, 3, 3},
		{"binomial", binomial, 9, 3, 4},
		{"binomial", binomial, 1, 0, 0},
	} {
		deepest := 0
		for v := range tc.n {
			deepest = max(deepest, depth(tc.make, v, tc.n))
		}
		if feeds := len(tc.make(0, tc.n).children); deepest != tc.deepest || feeds != tc.feeds {
			t.Errorf("%s of %d: depth %d, root feeds %d; want %d and %d", tc.name, tc.n, deepest, feeds, tc.deepest, tc.feeds)
		}
	}
}

package trees_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/submodules/trees"
)

// shapes are the trees with place 0 at the root.
var shapes = []struct {
	name  string
	shape trees.Shape
}{
	{"linear", trees.Linear},
	{"chain", trees.Chain},
	{"kchain", trees.KChains(4)},
	{"binary", trees.Binary},
	{"binomial", trees.Binomial},
	{"knomial", trees.Knomials(4)},
	{"8 chains", trees.KChains(8)},
	{"fan of 3", trees.Fans(3)},
	{"linear of 5", trees.Linears(5)},
	{"digits of 3", trees.Knomials(3)},
	{"digits of 8", trees.Knomials(8)},
}

// sizes are all small ones, and some around what the trees count in.
func sizes() []int {
	var all []int
	for n := 1; n <= 40; n++ {
		all = append(all, n)
	}
	return append(all, 63, 64, 65, 255, 256, 257, 1000)
}

// TestShapes: parents and children agree, everybody hangs below the root, and a
// subtree is a run of places: what keeps reductions in order.
func TestShapes(t *testing.T) {
	for _, s := range shapes {
		for _, n := range sizes() {
			t.Run(fmt.Sprintf("%s/n=%d", s.name, n), func(t *testing.T) {
				for v := range n {
					at := s.shape(v, n)
					if (v == 0) != (at.Parent < 0) || at.Parent >= v {
						t.Fatalf("parent of %d is %d", v, at.Parent)
					}
					if v > 0 && !slices.Contains(s.shape(at.Parent, n).Children, v) {
						t.Fatalf("%d is no child of its parent %d", v, at.Parent)
					}
				}
				for v := range min(n, 65) { // of many places the first ones are enough
					at := s.shape(v, n)
					if end := subtree(t, s.shape, v, n); end != at.End {
						t.Fatalf("the tree of %d ends before %d, not before %d", v, end, at.End)
					}
				}
				if end := subtree(t, s.shape, 0, n); end != n {
					t.Fatalf("the root's tree is the places below %d", end)
				}
			})
		}
	}
}

// subtree returns the place after the last one of v's tree, having seen that each
// child's tree begins where the one before ends.
func subtree(t *testing.T, shape trees.Shape, v, n int) int {
	end := v + 1
	for _, child := range shape(v, n).Children {
		if child != end {
			t.Fatalf("%d: the tree of child %d should begin at %d", v, child, end)
		}
		end = subtree(t, shape, child, n)
	}
	return end
}

// TestInOrder: parents and children agree, and going through the tree left, own,
// right counts all places in order.
func TestInOrder(t *testing.T) {
	for _, n := range sizes() {
		var order []int
		var visit func(v, parent int)
		visit = func(v, parent int) {
			at := trees.InOrder(v, n)
			if at.Parent != parent || len(at.Children) > 2 {
				t.Fatalf("n=%d: place %d below %d is %+v", n, v, parent, at)
			}
			for _, child := range at.Children {
				if child < v {
					visit(child, v)
				}
			}
			order = append(order, v)
			for _, child := range at.Children {
				if child > v {
					visit(child, v)
				}
			}
		}
		visit(trees.Top(n), -1)
		if len(order) != n || !slices.IsSorted(order) {
			t.Errorf("n=%d: left, own, right is %v", n, order)
		}
	}
}

// TestDepths is what tells the trees apart: edges on the longest way down, and
// how many places the root and any other place feed at most.
func TestDepths(t *testing.T) {
	for _, tc := range []struct {
		name              string
		shape             trees.Shape
		n, deepest        int
		rootFeeds, atMost int
	}{
		{"linear", trees.Linear, 33, 1, 32, 0},
		{"linear", trees.Linear, 34, 2, 32, 1},
		{"linear", trees.Linear, 1000, 2, 32, 31},
		{"chain", trees.Chain, 8, 7, 1, 1},
		{"kchain", trees.KChains(4), 8, 2, 4, 1},
		{"kchain", trees.KChains(4), 4, 1, 3, 0},
		{"kchain", trees.KChains(4), 18, 5, 4, 1},
		{"binary", trees.Binary, 7, 2, 2, 2},
		{"binary", trees.Binary, 8, 3, 2, 2},
		{"binary", trees.Binary, 1000, 9, 2, 2},
		{"binomial", trees.Binomial, 8, 3, 3, 2},
		{"binomial", trees.Binomial, 9, 3, 4, 2},
		{"binomial", trees.Binomial, 1, 0, 0, 0},
		{"knomial", trees.Knomials(4), 16, 2, 6, 3},
		{"knomial", trees.Knomials(4), 17, 2, 7, 3},
		{"knomial", trees.Knomials(4), 64, 3, 9, 6},
	} {
		deepest, most := 0, 0
		for v := range tc.n {
			d := 0
			for p := tc.shape(v, tc.n).Parent; p >= 0; p = tc.shape(p, tc.n).Parent {
				d++
			}
			if deepest = max(deepest, d); v > 0 {
				most = max(most, len(tc.shape(v, tc.n).Children))
			}
		}
		if feeds := len(tc.shape(0, tc.n).Children); deepest != tc.deepest || feeds != tc.rootFeeds || most != tc.atMost {
			t.Errorf("%s of %d: depth %d, root feeds %d, others up to %d; want %d, %d, %d",
				tc.name, tc.n, deepest, feeds, most, tc.deepest, tc.rootFeeds, tc.atMost)
		}
	}
}

// TestLeft: the sides of a binary tree are as large as each other, or the left
// one is larger by one; no edge but the root's crosses.
func TestLeft(t *testing.T) {
	for _, n := range sizes() {
		left := trees.Left(n)
		if right := n - 1 - left; left != right && left != right+1 {
			t.Errorf("n=%d: %d places on the left and %d on the right", n, left, right)
		}
		for v := 1; v < n; v++ {
			if p := trees.Binary(v, n).Parent; p > 0 && (p <= left) != (v <= left) {
				t.Errorf("n=%d: %d is on the other side than its parent %d", n, v, p)
			}
		}
	}
}

// TestLargestFirst: a binomial tree's last child may have the least below it.
func TestLargestFirst(t *testing.T) {
	for _, tc := range []struct {
		name  string
		place trees.Place
		want  []int
	}{
		{"binomial of 8", trees.Binomial(0, 8), []int{4, 2, 1}},
		{"binomial of 9", trees.Binomial(0, 9), []int{4, 2, 1, 8}},
		{"binomial of 13, 8", trees.Binomial(8, 13), []int{10, 9, 12}},
		{"binary of 8", trees.Binary(0, 8), []int{1, 5}},
		{"kchain of 7", trees.KChains(4)(0, 7), []int{1, 3, 5, 6}},
		{"in order of 8", trees.InOrder(4, 8), []int{2, 6}},
		{"leaf", trees.Chain(3, 4), nil},
	} {
		if got := tc.place.LargestFirst(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func ExampleBinomial() {
	for v := range 6 {
		fmt.Printf("%d %+v\n", v, trees.Binomial(v, 6))
	}
	// Output:
	// 0 {Parent:-1 Children:[1 2 4] End:6}
	// 1 {Parent:0 Children:[] End:2}
	// 2 {Parent:0 Children:[3] End:4}
	// 3 {Parent:2 Children:[] End:4}
	// 4 {Parent:0 Children:[5] End:6}
	// 5 {Parent:4 Children:[] End:6}
}

func ExampleInOrder() {
	fmt.Println("top", trees.Top(5))
	for v := range 5 {
		at := trees.InOrder(v, 5)
		fmt.Println(v, "below", at.Parent, "has", at.Children)
	}
	// Output:
	// top 2
	// 0 below 1 has []
	// 1 below 2 has [0]
	// 2 below -1 has [1 4]
	// 3 below 4 has []
	// 4 below 2 has [3]
}

// Without a number a shape is as usual, and its children are bounded by it.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		name        string
		by          func(number int) trees.Shape
		usual       trees.Shape
		number, fan int
	}{
		{"kchain", trees.KChains, trees.KChains(4), 7, 7},
		{"binary", trees.Fans, trees.Binary, 3, 3},
		{"linear", trees.Linears, trees.Linear, 5, 5},
		{"knomial", trees.Knomials, trees.Knomials(4), 4, 3 * 5}, // three in each digit of 1000
	} {
		for _, n := range sizes() {
			most := 0
			for v := range n {
				if got, want := c.by(0)(v, n), c.usual(v, n); !slices.Equal(got.Children, want.Children) || got.Parent != want.Parent {
					t.Errorf("%s of %d: place %d is %+v, without a number %+v", c.name, n, v, want, got)
				}
				most = max(most, len(c.by(c.number)(v, n).Children))
			}
			if most > c.fan || n > 100 && most < c.number-1 {
				t.Errorf("%s/%d of %d: up to %d children", c.name, c.number, n, most)
			}
		}
	}
}

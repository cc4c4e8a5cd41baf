// Package trees is the shapes that messages travel along: index arithmetic on n places, one
// place at a time. It knows no ranks, messages or steps; its user gives each place a rank.
//
//	at := trees.Binomial(v, n) // for v of 0…n−1
//	if at.Parent >= 0 { receive from at.Parent }
//	for _, child := range at.Children { send to child }
//
// In all trees except [InOrder] place 0 is the root. The tree below each child is a stretch of
// places, right behind those of the parent and of the children before. So a place that combines
// its own data with the children's, one after the other, keeps the order of places.
package trees

import "slices"

// Place is one place in a tree.
type Place struct {
	Parent   int   // -1 at the root
	Children []int // ascending
	End      int   // the place after the last one of this place's tree
}

// LargestFirst are the children in the order of service: the one with most places below it has
// the longest way to go.
func (p Place) LargestFirst() []int {
	size := func(child int) int {
		for _, next := range p.Children {
			if next > child {
				return next - child
			}
		}
		return p.End - child
	}
	order := slices.Clone(p.Children)
	slices.SortStableFunc(order, func(a, b int) int { return size(b) - size(a) })
	return order
}

// Shape finds place v in a tree of n.
type Shape func(v, n int) Place

// spread divides the places below a place into as many equal runs as it may have children, one
// child leading each: top of them below the root, fan elsewhere. Larger runs come first. It goes
// down from the root, in O(depth).
func spread(v, n, top, fan int) Place {
	parent, at, size, most := -1, 0, n, top
	for v != at {
		if most == 1 { // a chain from here on
			at, parent, size = v, v-1, size-(v-at)
			break
		}
		rest := v - at - 1 // places between at and v
		runs := min(most, size-1)
		short, long := (size-1)/runs, (size-1)%runs // the first long runs have one place more
		run := 0
		if whole := long * (short + 1); rest < whole {
			run = rest / (short + 1)
			at, parent, size = at+1+run*(short+1), at, short+1
		} else {
			run = (rest - whole) / short
			at, parent, size = at+1+whole+run*short, at, short
		}
		most = fan
	}
	return Place{parent, heads(v, size, most), v + size}
}

// heads are the children of v in its tree of size places.
func heads(v, size, most int) []int {
	runs := min(most, size-1)
	if runs <= 0 {
		return nil
	}
	all := make([]int, runs)
	for i, next := 0, v+1; i < runs; i++ {
		all[i] = next
		if next += (size - 1) / runs; i < (size-1)%runs {
			next++
		}
	}
	return all
}

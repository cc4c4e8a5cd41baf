package trees

import "cmp"

// Binary halves the places below each place. Places are numbered in preorder, not row by row as
// in a heap: so a child's tree is a run.
//
//	     0
//	  ┌──┴──┐
//	  1     5
//	┌─┴─┐  ┌┴┐
//	2   4  6 7
//	│
//	3
func Binary(v, n int) Place { return spread(v, n, 2, 2) }

// Fans is [Binary] with so many children below each place, 1 or more; 0: two.
func Fans(children int) Shape {
	most := cmp.Or(children, 2)
	return func(v, n int) Place { return spread(v, n, most, most) }
}

// Left is how many places are below the root's first child in a [Binary] tree of n, this child
// included: 1…Left are on the left, the others on the right.
func Left(n int) int { return n / 2 }

package adapt

import (
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/trees"
)

// splitBcast sends the first half of the message down the left side of a binary
// tree and the second down the right side; each place on the left exchanges
// halves with the one as far along on the right, piece by piece. The root sends
// hardly more than the message, once; others at most one and a half times.
//
//	     0          from above   1 2 3 4  the first half
//	  ┌──┴──┐                    5 6 7    the second
//	  1     5       exchange     1↔5 2↔6 3↔7
//	┌─┴─┐  ┌┴┐      left over    0→4 the second
//	2   4  6 7
//	│
//	3
func splitBcast(e *submodules.Emitter, c *submodules.Call) {
	at := seatsFrom(c.Group.Leader, c)
	first, second := halves(c)
	left := trees.Left(at.n)
	switch {
	case at.me == 0:
		splitRoot(e, at, first, second)
	case at.me > left:
		splitMember(e, at, second, first, at.me-left)
	case at.me+left < at.n:
		splitMember(e, at, first, second, at.me+left)
	default:
		splitMember(e, at, first, second, 0)
	}
}

// halves are the call on the first half of the elements and on the second; the
// first has one more if they are odd.
func halves(c *submodules.Call) (first, second *submodules.Call) {
	a, b := *c, *c
	half := (c.Dst.Len/c.Elem + 1) / 2 * c.Elem
	a.Dst, b.Dst = c.Dst.Cut(0, half), c.Dst.Cut(half, c.Dst.Len-half)
	return &a, &b
}

// splitRoot feeds both sides, and the last place on the left if it has no partner. A rank on
// both ways gets the first half before the second.
func splitRoot(e *submodules.Emitter, at seats, first, second *submodules.Call) {
	onLeft, onRight := neighbours{parent: nobody}, neighbours{parent: nobody}
	if at.n > 1 {
		onLeft.children = append(onLeft.children, at.rank(1))
	}
	left := trees.Left(at.n)
	if left+1 < at.n {
		onRight.children = append(onRight.children, at.rank(left+1))
	}
	if 2*left == at.n {
		onRight.children = append(onRight.children, at.rank(left))
	}
	bcast(e, first, onLeft)
	bcast(e, second, onRight)
}

// splitMember passes its side's half on to its children and to its partner, and gets the other
// half from this partner. Partner 0, the root, needs nothing.
func splitMember(e *submodules.Emitter, at seats, mine, other *submodules.Call, partner int) {
	place := trees.Binary(at.me, at.n)
	near := at.neighbours(place.Parent, place.LargestFirst())
	if partner != 0 {
		near.children = append(near.children, at.rank(partner))
	}
	bcast(e, mine, near)
	bcast(e, other, neighbours{parent: at.rank(partner)})
}

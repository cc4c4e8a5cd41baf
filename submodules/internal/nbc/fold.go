package nbc

import "github.com/tierflow/tierflow/submodules"

// fold makes the largest power of two of n ranks: as many pairs of neighbours as
// there are ranks too many count as one member each. One of the pair takes the
// other's data before and gives it the result after. Members stand in rank order.
//
//	n = 6    ranks    0 1   2 3   4   5
//	         members   0     1    2   3
type fold struct {
	pairs, members int
	keep           int // index of a rank that must stand for its pair
}

// newFold returns the fold of c's group with keep standing for its pair. In the other pairs the lower
// rank does.
func newFold(c *submodules.Call, keep int) fold {
	n := len(c.Group.Ranks)
	members := submodules.PowerOfTwo(n)
	return fold{pairs: n - members, members: members, keep: keep}
}

// partner is the other one of a rank's pair, -1 if it has none.
func (f fold) partner(index int) int {
	if index >= 2*f.pairs {
		return -1
	}
	return index ^ 1
}

// index is the rank standing for a member.
func (f fold) index(member int) int {
	switch {
	case member >= f.pairs:
		return member + f.pairs
	case f.keep == 2*member+1:
		return f.keep
	}
	return 2 * member
}

// member is the one that a rank stands for or is folded into.
func (f fold) member(index int) int {
	if index >= 2*f.pairs {
		return index - f.pairs
	}
	return index / 2
}

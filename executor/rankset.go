package executor

import (
	"math/bits"
)

// rankSet is some ranks of a communicator or of the world.
type rankSet []uint64

// newRankSet returns an empty set for n ranks.
func newRankSet(n int) rankSet { return make(rankSet, (n+63)/64) }

// set adds a rank; a negative one is no member and is ignored.
func (s rankSet) set(r int32) {
	if r >= 0 { // a message may come from a rank that isn't in the communicator
		s[r/64] |= 1 << (r % 64)
	}
}

// has reports whether a rank is in the set.
func (s rankSet) has(r int32) bool { return int(r/64) < len(s) && s[r/64]>>(r%64)&1 != 0 }

// count returns how many there are.
func (s rankSet) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

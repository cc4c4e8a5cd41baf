package agree

import "math/bits"

// Set is some ranks of a communicator. A set is never changed: methods return another one.
// The zero value is empty.
type Set []uint64

// All returns the ranks 0 to n-1.
func All(n int) Set {
	s := make(Set, (n+63)/64)
	for i := range s {
		s[i] = ^uint64(0)
	}
	if n%64 != 0 {
		s[len(s)-1] = 1<<(n%64) - 1
	}
	return s
}

// Of returns a set of these ranks.
func Of(ranks ...int) (s Set) {
	for _, r := range ranks {
		s = s.With(r)
	}
	return s
}

// Has reports whether a rank is in s.
func (s Set) Has(r int) bool { return r/64 < len(s) && s[r/64]>>(r%64)&1 != 0 }

// With returns s and a rank.
func (s Set) With(r int) Set {
	if s.Has(r) {
		return s
	}
	with := make(Set, max(len(s), r/64+1))
	copy(with, s)
	with[r/64] |= 1 << (r % 64)
	return with
}

// Union returns the ranks of both.
func (s Set) Union(o Set) Set {
	if s.Includes(o) {
		return s
	}
	union := make(Set, max(len(s), len(o)))
	copy(union, s)
	for i, word := range o {
		union[i] |= word
	}
	return union
}

// Without returns the ranks of s outside of o.
func (s Set) Without(o Set) Set {
	rest := make(Set, len(s))
	for i, word := range s {
		if i < len(o) {
			word &^= o[i]
		}
		rest[i] = word
	}
	return rest
}

// Includes reports whether all ranks of o are in s.
func (s Set) Includes(o Set) bool {
	for i, word := range o {
		if i < len(s) {
			word &^= s[i]
		}
		if word != 0 {
			return false
		}
	}
	return true
}

// Equal reports whether s and o have the same ranks.
func (s Set) Equal(o Set) bool { return s.Includes(o) && o.Includes(s) }

// Count returns how many ranks there are.
func (s Set) Count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Ranks returns them, ascending.
func (s Set) Ranks() []int {
	ranks := make([]int, 0, s.Count())
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			ranks = append(ranks, 64*i+bits.TrailingZeros64(word))
		}
	}
	return ranks
}

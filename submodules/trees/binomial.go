package trees

import "cmp"

// Binomial is the tree of doublings: in the k-th round 2^k places know and 2^k others learn. The
// children of v are v+1, v+2, v+4, … below v's lowest set bit.
//
//	0 ─┬─ 1
//	   ├─ 2 ── 3
//	   └─ 4 ─┬─ 5
//	         └─ 6 ── 7
func Binomial(v, n int) Place { return knomial(v, n, 2) }

// Radix is the usual one of [Knomials], Libnbc's default.
const Radix = 4

// Knomials is the binomial tree in digits of a radix, 2 or more, instead of bits; 0: [Radix].
// In digits of four it is half as deep, and each place feeds up to three in a round:
//
//	0 ─┬─ 1
//	   ├─ 2
//	   ├─ 3
//	   └─ 4 ─┬─ 5
//	         ├─ 6
//	         └─ 7
func Knomials(radix int) Shape {
	digits := cmp.Or(radix, Radix)
	return func(v, n int) Place { return knomial(v, n, digits) }
}

// knomial: v's parent is v without its lowest digit that isn't 0; the tree of
// v+d·radix^k is the radix^k places from there on.
func knomial(v, n, radix int) Place {
	p := Place{Parent: -1, End: n}
	for unit := 1; unit < n; unit *= radix {
		if digit := v / unit % radix; digit != 0 {
			p.Parent, p.End = v-digit*unit, min(v+unit, n)
			break
		}
		for digit := 1; digit < radix && v+digit*unit < n; digit++ {
			p.Children = append(p.Children, v+digit*unit)
		}
	}
	return p
}

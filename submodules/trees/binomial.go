package trees

// Binomial has in its k-th round 2^k places that know and 2^k that learn: the
// children of v are v+1, v+2, v+4, … below v's lowest set bit.
//
//	0 ─┬─ 1
//	   ├─ 2 ── 3
//	   └─ 4 ─┬─ 5
//	         └─ 6 ── 7
func Binomial(v, n int) Place { return knomial(v, n, 2) }

// Radix is that of [Knomial], Libnbc's default.
const Radix = 4

// Knomial is the binomial tree in digits of [Radix] instead of bits: half as
// deep, each place feeds up to three in a round.
//
//	0 ─┬─ 1
//	   ├─ 2
//	   ├─ 3
//	   └─ 4 ─┬─ 5
//	         ├─ 6
//	         └─ 7
func Knomial(v, n int) Place { return knomial(v, n, Radix) }

// Knomials is [Knomial] in digits of another radix, 2 or more; 0: [Radix].
func Knomials(radix int) Shape {
	return func(v, n int) Place { return knomial(v, n, or(radix, Radix)) }
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

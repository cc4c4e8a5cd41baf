package submodules

import (
	"iter"
	"math/bits"
)

// Digits yields the digits of the numbers below n in a radix, 2 or more, the lowest first: what one is worth, and how
// many values it has.
func Digits(n, radix int) iter.Seq2[int, int] {
	return func(yield func(unit, values int) bool) {
		for unit := 1; unit < n; unit *= radix {
			if !yield(unit, min(radix, (n+unit-1)/unit)) {
				return
			}
		}
	}
}

// PowerOfTwo is the largest power of two up to n; 1 <= n.
func PowerOfTwo(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

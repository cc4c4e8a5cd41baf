package rules

import (
	"math"
	"math/bits"
)

// Functions and comparisons of rules, for the source from [Base.Source]. A function of [Unknown] is
// Unknown, and a comparison with it does not hold. A result that is too large is the largest number.

// Add returns x + y.
func Add(x, y int64) int64 {
	if x == Unknown || y == Unknown {
		return Unknown
	}
	if sum := x + y; x < 0 || y < 0 || sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// Sub returns x − y.
func Sub(x, y int64) int64 {
	if x == Unknown || y == Unknown {
		return Unknown
	}
	return x - y
}

// Mul returns x × y.
func Mul(x, y int64) int64 {
	if x == Unknown || y == Unknown {
		return Unknown
	}
	if x < 0 || y < 0 {
		return max(x, -math.MaxInt64) * y
	}
	high, low := bits.Mul64(uint64(x), uint64(y))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// Div returns x / y. A division by 0 gives the largest number: it is asked for as a bound.
func Div(x, y int64) int64 {
	switch {
	case x == Unknown || y == Unknown:
		return Unknown
	case y == 0:
		return math.MaxInt64
	}
	return x / y
}

// Min returns the smaller one of two numbers.
func Min(x, y int64) int64 { return min(x, y) } // Unknown is the least number

// Max returns the larger one of two numbers.
func Max(x, y int64) int64 {
	if x == Unknown || y == Unknown {
		return Unknown
	}
	return max(x, y)
}

// Near returns least, doubled as long as it is below most and its double is up to n.
func Near(n, least, most int64) int64 {
	if n == Unknown || least == Unknown || most == Unknown {
		return Unknown
	}
	for least > 0 && least < most && least <= n/2 {
		least *= 2
	}
	return least
}

// Packed returns a sixteenth less than n: a segment and the header of its frame fill whole packets
// then. Devices take up to 64 KiB at once, or a power of two that divides it. A full power of two
// leaves a rest, and this costs as much as a packet.
func Packed(n int64) int64 {
	if n == Unknown {
		return Unknown
	}
	return n - n/16
}

// Log2 returns the logarithm of n to the base two, rounded down; 0 for numbers below 1.
func Log2(n int64) int64 {
	if n == Unknown {
		return Unknown
	}
	return int64(bits.Len64(uint64(max(n, 1)))) - 1
}

// Pow2 is 1 if n is a power of two, else 0.
func Pow2(n int64) int64 {
	if n == Unknown {
		return Unknown
	}
	return Bool(n > 0 && n&(n-1) == 0)
}

// Less reports x < y.
func Less(x, y int64) bool { return x < y && x != Unknown }

// AtMost reports x <= y.
func AtMost(x, y int64) bool { return x <= y && x != Unknown }

// More reports x > y.
func More(x, y int64) bool { return x > y && y != Unknown }

// AtLeast reports x >= y.
func AtLeast(x, y int64) bool { return x >= y && y != Unknown }

// Equal reports x = y.
func Equal(x, y int64) bool { return x == y && x != Unknown }

// Unequal reports x != y.
func Unequal(x, y int64) bool { return x != y && x != Unknown && y != Unknown }

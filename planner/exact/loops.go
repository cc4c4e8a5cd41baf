package exact

import (
	"math"

	"github.com/tierflow/tierflow/executor/kernel"
)

// loops are how blocks of elements become multiples of a grid, and these the result. A block's top is
// the exponent field of its largest finite element; that of subnormals is 0.
type loops[T Float, E exponent, Q carrier] struct {
	special E // the exponent field of NaN and infinities

	// The following take one block.

	// top is the largest exponent field.
	top func(x []T) E
	// add rounds elements of at most such a top to multiples of the grid and adds these to acc.
	add func(acc []Q, x []T, top E, shift int)
	// result is the sum as floats, divided by count.
	result func(dst []T, acc []Q, top E, shift int, count int64)
}

var (
	loops32 = &loops[float32, uint8, int32]{1<<8 - 1, top32, add32, result32}
	loops64 = &loops[float64, uint16, int64]{1<<11 - 1, top64, add64, result64}
)

// look raises tops to those of x, and reports whether there is a NaN or an infinity.
func (l *loops[T, E, Q]) look(tops []E, x []T, block int) (special bool) {
	for i := range tops {
		blk := x[i*block : min((i+1)*block, len(x))]
		top := l.top(blk)
		if top == l.special {
			special, top = true, 0
			for j := range blk {
				if e := l.top(blk[j : j+1]); e != l.special {
					top = max(top, e)
				}
			}
		}
		tops[i] = max(tops[i], top)
	}
	return special
}

// addAll rounds x to multiples of the blocks' grids and adds these to acc. Where flags isn't nil it
// marks elements that are NaN or infinite. It reports whether x is above its tops, and then has added
// anything.
func (l *loops[T, E, Q]) addAll(acc []Q, x []T, tops []E, block, shift int, flags []uint8) (above bool) {
	for i, top := range tops {
		from, end := i*block, min((i+1)*block, len(x))
		switch found := l.top(x[from:end]); {
		case found <= top:
			l.add(acc[from:end], x[from:end], top, shift)
		case found == l.special && flags != nil:
			for j := from; j < end; j++ {
				switch e := l.top(x[j : j+1]); {
				case e == l.special:
					flags[j] |= markOf(float64(x[j]))
				case e > top:
					above = true
				default:
					l.add(acc[j:j+1], x[j:j+1], top, shift)
				}
			}
		default:
			above = true
		}
	}
	return above
}

// results is the sum as floats, divided by count.
func (l *loops[T, E, Q]) results(dst []T, acc []Q, tops []E, block, shift int, count int64) {
	for i, top := range tops {
		from, end := i*block, min((i+1)*block, len(dst))
		l.result(dst[from:end], acc[from:end], top, shift, count)
	}
}

// All scales are powers of two, so products are exact but where they fall below what rounding makes
// of them anyway: it makes no difference whether a compiler fuses them.

const (
	// Bits of a multiple, of all contributions together.
	carried32 = 30
	carried64 = 62
	// An element with exponent field E is below 2^(E-below).
	below32 = 126
	below64 = 1022
)

// power is 2^k, for k from -1022 to 1023.
func power(k int) float64 { return math.Float64frombits(uint64(k+1023) << 52) }

func top32(x []float32) uint8 { return uint8(kernel.LargestF32(x) >> 23) }

func add32(acc []int32, x []float32, top uint8, shift int) {
	kernel.AddMultiplesF32(acc, x, power(carried32-shift+below32-int(top)))
}

func result32(dst []float32, acc []int32, top uint8, shift int, count int64) {
	grid := power(int(top) - below32 + shift - carried32)
	if count == 1 {
		kernel.MultiplyF32(dst, acc, grid)
		return
	}
	for i, q := range acc {
		dst[i] = float32(float64(q) * grid / float64(count))
	}
}

func top64(x []float64) uint16 {
	m := uint64(0)
	for _, v := range x {
		m = max(m, math.Float64bits(v)&^(1<<63))
	}
	return uint16(m >> 52)
}

func add64(acc []int64, x []float64, top uint16, shift int) {
	k := carried64 - shift + below64 - int(top) // above 1023 for subnormals: in two steps
	one, two := power(k/2), power(k-k/2)
	acc = acc[:len(x)]
	for i, v := range x {
		acc[i] += int64(math.RoundToEven(v * one * two))
	}
}

func result64(dst []float64, acc []int64, top uint16, shift int, count int64) {
	k := int(top) - below64 + shift - carried64
	for i, q := range acc {
		dst[i] = scale64(q, k)
		if count != 1 {
			dst[i] /= float64(count)
		}
	}
}

// smallest64 is the exponent of the smallest float64.
const smallest64 = -1074

// scale64 is q·2^k, rounded once.
func scale64(q int64, k int) float64 {
	if drop := smallest64 - k; drop > 0 && max(q, -q)>>52 < 1<<drop {
		// The result is subnormal: what is below the smallest float goes first.
		return float64(roundOff(q, drop)) * 0x1p-1074
	}
	half := k / 2
	return float64(q) * power(half) * power(k-half)
}

// roundOff is q/2^n, rounded to the nearest and ties to even.
func roundOff(q int64, n int) int64 {
	rounded := q >> n
	rest, half := q-rounded<<n, int64(1)<<(n-1)
	if rest > half || rest == half && rounded&1 == 1 {
		rounded++
	}
	return rounded
}

// markOf is the mark of a NaN or an infinity.
func markOf(v float64) uint8 {
	switch {
	case v > 0:
		return isPlusInf
	case v < 0:
		return isMinusInf
	default:
		return isNaN
	}
}

// mark writes what sums with special elements are.
func mark[T Float](dst []T, flags []uint8) {
	for i, f := range flags {
		switch f {
		case 0:
		case isPlusInf:
			dst[i] = T(math.Inf(1))
		case isMinusInf:
			dst[i] = T(math.Inf(-1))
		default:
			dst[i] = T(math.NaN())
		}
	}
}

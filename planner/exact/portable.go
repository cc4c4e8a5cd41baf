package exact

import (
	"math"
	"unsafe"
)

// The loops in Go. All scales are powers of two, so products are exact but where they fall below
// what rounding makes of them anyway: it makes no difference whether a compiler fuses them.

const (
	top32 = 0xff // exponent fields of NaN and infinities
	top64 = 0x7ff
	// Bits of a multiple, of all contributions together.
	carried32 = 30
	carried64 = 62
	// An element with exponent field E is below 2^(E-below).
	below32 = 126
	below64 = 1022
)

var kernels32 = &kernels[float32, uint8, int32]{look32, add32, result32}

var kernels64 = &kernels[float64, uint16, int64]{look64, add64, result64}

// power is 2^k, for k from -1022 to 1023.
func power(k int) float64 { return math.Float64frombits(uint64(k+1023) << 52) }

// grid32 is g of a block.
func grid32(top uint8, shift int) float64 { return power(int(top) - below32 + shift - carried32) }

// bits32 looks at floats as their bits.
func bits32(x []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

func bits64(x []float64) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// largest32 is the largest magnitude's bits.
func largest32(x []uint32) (m uint32) {
	for _, b := range x {
		m = max(m, b&^(1<<31))
	}
	return m
}

func largest64(x []uint64) (m uint64) {
	for _, b := range x {
		m = max(m, b&^(1<<63))
	}
	return m
}

func look32(tops []uint8, x []float32, block int) (special bool) {
	all := bits32(x)
	for i := range tops {
		blk := all[i*block : min((i+1)*block, len(all))]
		top := uint8(largest32(blk) >> 23)
		if top == top32 {
			special, top = true, 0
			for _, b := range blk {
				if e := uint8(b >> 23); e != top32 {
					top = max(top, e)
				}
			}
		}
		tops[i] = max(tops[i], top)
	}
	return special
}

func look64(tops []uint16, x []float64, block int) (special bool) {
	all := bits64(x)
	for i := range tops {
		blk := all[i*block : min((i+1)*block, len(all))]
		top := uint16(largest64(blk) >> 52)
		if top == top64 {
			special, top = true, 0
			for _, b := range blk {
				if e := uint16(b>>52) & top64; e != top64 {
					top = max(top, e)
				}
			}
		}
		tops[i] = max(tops[i], top)
	}
	return special
}

// round32 added to a number below 2^51 rounds it to an integer, ties to even, which is then the
// low half of the sum's bits.
const round32 = 0x1.8p52

func add32(acc []int32, x []float32, tops []uint8, block, shift int, flags []uint8) (above bool) {
	all := bits32(x)
	for i, top := range tops {
		from, end := i*block, min((i+1)*block, len(x))
		scale := power(carried32 - shift + below32 - int(top))
		to, blk := acc[from:end], x[from:end]
		to = to[:len(blk)]
		switch found := uint8(largest32(all[from:end]) >> 23); {
		case found <= top:
			for j, v := range blk {
				to[j] += int32(uint32(math.Float64bits(float64(float64(v)*scale) + round32)))
			}
		case found == top32 && flags != nil:
			for j, v := range blk {
				e := uint8(all[from+j] >> 23)
				switch {
				case e == top32:
					flags[from+j] |= markOf(float64(v))
				case e > top:
					above = true
				default:
					to[j] += int32(uint32(math.Float64bits(float64(float64(v)*scale) + round32)))
				}
			}
		default:
			above = true
		}
	}
	return above
}

func add64(acc []int64, x []float64, tops []uint16, block, shift int, flags []uint8) (above bool) {
	all := bits64(x)
	for i, top := range tops {
		from, end := i*block, min((i+1)*block, len(x))
		k := carried64 - shift + below64 - int(top) // above 1023 for subnormals: in two steps
		one, two := power(k/2), power(k-k/2)
		to, blk := acc[from:end], x[from:end]
		to = to[:len(blk)]
		switch found := uint16(largest64(all[from:end]) >> 52); {
		case found <= top:
			for j, v := range blk {
				to[j] += int64(math.RoundToEven(v * one * two))
			}
		case found == top64 && flags != nil:
			for j, v := range blk {
				e := uint16(all[from+j]>>52) & top64
				switch {
				case e == top64:
					flags[from+j] |= markOf(v)
				case e > top:
					above = true
				default:
					to[j] += int64(math.RoundToEven(v * one * two))
				}
			}
		default:
			above = true
		}
	}
	return above
}

func result32(dst []float32, acc []int32, tops []uint8, block, shift int, count int64) {
	for i, top := range tops {
		from, end := i*block, min((i+1)*block, len(dst))
		g, to := grid32(top, shift), dst[from:end]
		part := acc[from:end]
		part = part[:len(to)]
		if count != 1 {
			for j, q := range part {
				to[j] = float32(float64(q) * g / float64(count))
			}
			continue
		}
		for j, q := range part {
			to[j] = float32(float64(q) * g)
		}
	}
}

func result64(dst []float64, acc []int64, tops []uint16, block, shift int, count int64) {
	for i, top := range tops {
		k := int(top) - below64 + shift - carried64
		for j := i * block; j < min((i+1)*block, len(dst)); j++ {
			dst[j] = scale64(acc[j], k)
			if count != 1 {
				dst[j] /= float64(count)
			}
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

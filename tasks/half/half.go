// Package half holds the 16-bit floating-point element types: IEEE 754
// binary16 and bfloat16. It converts; it never computes: reductions convert to
// float32, combine and round once.
//
//	h := half.NewFloat16(1.0 / 3)
//	fmt.Println(h, h.Float32()) // 0.33325195 0.33325195
//
// Conversions to float32 are exact. Conversions from float32 round to nearest,
// ties to even; what is too large becomes an infinity, and a NaN stays a (quiet)
// NaN with the upper bits of its payload.
package half

import (
	"math"
	"strconv"
)

// Float16 is an IEEE 754 binary16 number, as its bits: 1 sign, 5 exponent and
// 10 fraction bits; the largest finite value is 65504.
type Float16 uint16

// BFloat16 is the upper half of a float32, as its bits: 1 sign, 8 exponent and
// 7 fraction bits.
type BFloat16 uint16

const (
	inf32   = 0x7f800000 // bits of the float32 +Inf
	quiet32 = 0x00400000 // the bit that makes a float32 NaN quiet
)

// NewFloat16 rounds f to the nearest Float16.
func NewFloat16(f float32) Float16 {
	b := math.Float32bits(f)
	sign := Float16(b >> 16 & 0x8000)
	b &^= 1 << 31
	switch {
	case b > inf32:
		return sign | 0x7e00 | Float16(b>>13&0x3ff)
	case b >= 0x47800000: // 65536; from 65520 on the carry below gives Inf as well
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: a unit of 0.5's last place is one of ours
		return sign | Float16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1
	return sign | Float16((b-112<<23)>>13)
}

// Float32 returns h exactly.
func (h Float16) Float32() float32 {
	sign, magnitude := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case magnitude > 0x7c00:
		return math.Float32frombits(sign | inf32 | quiet32 | magnitude<<13)
	case magnitude == 0x7c00:
		return math.Float32frombits(sign | inf32)
	case magnitude < 0x0400: // a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(magnitude)*0x1p-24))
	}
	return math.Float32frombits(sign | (magnitude<<13 + 112<<23))
}

// String is the shortest decimal number that reads back as h's float32.
func (h Float16) String() string { return format(h.Float32()) }

// NewBFloat16 rounds f to the nearest BFloat16.
func NewBFloat16(f float32) BFloat16 {
	b := math.Float32bits(f)
	if b&^(1<<31) > inf32 {
		return BFloat16((b | quiet32) >> 16)
	}
	return BFloat16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32 returns h exactly.
func (h BFloat16) Float32() float32 { return math.Float32frombits(uint32(h) << 16) }

// String is the shortest decimal number that reads back as h's float32.
func (h BFloat16) String() string { return format(h.Float32()) }

func format(f float32) string { return strconv.FormatFloat(float64(f), 'g', -1, 32) }

package kernel

import (
	"math"
	"unsafe"
)

// The loops of exact sums, between float32 and integers that count multiples of a power of two.

// lanes is how many elements assembly takes at a time.
const lanes = 8

// LargestF32 returns the bits of the largest magnitude in x: NaN above infinities above numbers. Of
// no elements it is 0.
func LargestF32(x []float32) (m uint32) {
	n := inAssembly(len(x))
	if n > 0 {
		m = largestF32(&x[0], n)
	}
	for _, b := range unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))[n:] {
		m = max(m, b&^(1<<31))
	}
	return m
}

// roundF64 added to a number below 2^51 rounds it to an integer, ties to even, which is then the low
// half of the sum's bits.
const roundF64 = 0x1.8p52

// AddMultiplesF32 adds x·scale, rounded to the nearest integer and ties to even, to acc, which is as
// long as x. All products must be below 2^31.
func AddMultiplesF32(acc []int32, x []float32, scale float64) {
	n := inAssembly(len(x))
	if n > 0 {
		_ = acc[n-1]
		addMultiplesF32(&acc[0], &x[0], n, scale)
	}
	acc, x = acc[n:len(x)], x[n:]
	for i, v := range x {
		acc[i] += int32(uint32(math.Float64bits(float64(float64(v)*scale) + roundF64)))
	}
}

// MultiplyF32 makes dst of q·grid, rounded once if grid is a power of two. q is as long as dst.
func MultiplyF32(dst []float32, q []int32, grid float64) {
	n := inAssembly(len(dst))
	if n > 0 {
		_ = q[n-1]
		multiplyF32(&dst[0], &q[0], n, grid)
	}
	q = q[n:len(dst)]
	for i, v := range q {
		dst[n+i] = float32(float64(v) * grid)
	}
}

// Package exact sums slices of floating-point numbers so that the result has the same bits for
// any layout of the ranks, any plan, any order of arrival, and any number of ranks that share the
// same contributions.
//
//	sum, err := exact.New[float32](ctx, comm, len(grad), 24, nil) // 24 contributions, of all ranks together
//	for range steps {
//		mine := compute() // this rank's contributions
//		err = sum.Run(ctx, mine, grad)
//	}
//
// Run looks at each contribution twice. A program that can't keep all of them computes them twice,
// and calls Look for each, Agree, Add for each, and Sum.
//
// # How
//
// Integers add up to the same whatever the order, so integers are what ranks send each other.
// Elements lie in blocks. All ranks agree on the exponent e of each block: the smallest for which
// every element of every contribution is below 2^e. That is one Max-allreduce of a byte for each
// block. Of S contributions, with h = ⌈log2 S⌉, each is rounded, to the nearest and ties to even,
// to multiples of g = 2^(e+h-30). The multiples are int32 whose sum can't overflow, and one
// Sum-allreduce adds them. The result is g times the sum, rounded once. For float64 the carrier is
// int64, and g = 2^(e+h-62). So as many bytes go over the wire as in a sum of the floats, and one
// or two for each block.
//
// This is the rounding to a common grid of Demmel and Nguyen ("Fast Reproducible Floating-Point
// Summation", ARITH 2013), with integers to carry the multiples.
//
// # How exact
//
// Each contribution is off by at most g/2, and the result is rounded once: the error is at most
// S·2^(e+h-31) and half a unit in the last place, for float64 S·2^(e+h-63). For 8 contributions
// the grid of float32 is 2^(e-27), finer than float32 itself near the block's largest element. For
// 1024 it is 2^(e-20).
//
// An element that is much smaller than the largest of its block keeps absolute accuracy, not
// relative: 1 beside 2^40 in a block is lost. Where that matters give each element an exponent of
// its own ([Options.Block] 1: a quarter more bytes), or sum float64.
//
// -0 counts as +0. A sum above the largest float is an infinity on all ranks. NaN and infinities
// sum up as in floating point, one element at a time; a sum with some of them takes one more call,
// of a byte for each element.
//
// # What it doesn't promise
//
// Contributions themselves must have the same bits: what computes them must not depend on the
// number of ranks, nor on the processor.
//
// A sum in free order has the same bits for one plan and one layout, [planner.Options]
// Deterministic for one number of ranks.
package exact

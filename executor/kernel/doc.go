// Package kernel combines the elements of two buffers into a third: the
// arithmetic of reductions. It holds one function per operation × element type
// and picks the fastest that this CPU can run, once, at start. It never
// allocates while combining, starts no goroutine and knows no rank.
//
//	f, err := kernel.For(tasks.Average, tasks.Float16)
//	if scale := kernel.Scale(tasks.Average, tasks.Float16, ranks); scale != nil {
//		scale(acc, mine) // on every rank
//	}
//	f(acc, acc, fromPeer) // acc[i] = acc[i] + fromPeer[i]
//	if finish := kernel.Finish(tasks.Average, tasks.Float16, ranks, ranks); finish != nil {
//		finish(acc)
//	}
//
// The meaning of the operations, on every path:
//
//   - Integers wrap. Land, Lor and Lxor give 1 or 0.
//   - Min and Max give a NaN if either operand is one, and order −0 below +0.
//     Which NaN comes out of a combination of two is not specified.
//   - MinLoc and MaxLoc: a NaN wins; among equal values (and among NaNs) the lower
//     index wins.
//   - Float16 and BFloat16 are combined in float32 and rounded to nearest even
//     once per combination.
//   - Average of n ranks is Sum, divided once at the end by [Finish]. The sum must be
//     in range: operands of up to 1/n of the largest value are safe. For Float16 that
//     would be too little. So its operands are divided before by 2^k, the smallest
//     power of two not below n ([Scale]), and the sum by n/2^k: operands of up to half
//     of the largest value, 32752, are safe, for up to 1024 ranks in any order. This
//     gives the bits of a sum in range that is divided once, unless a quotient is
//     below 2⁻¹⁴ (6.1e-5): it is rounded to a multiple of 2⁻²⁴, which moves the mean
//     by at most 2^k × 2⁻²⁵.
//     Average is not defined on integers, whose quotient would lose its fraction: Sum
//     and divide instead.
//
// [LargestF32], [AddMultiplesF32] and [MultiplyF32] are the parts of exact sums with floats, before and
// after integers are summed.
//
// [CopyPast] is a copy for memory that another processor has in its cache.
//
// Float operations other than Average's divisions are one IEEE operation per
// element, so assembly and Go give the same bits (complex Prod in Go may be fused
// on some machines).
package kernel

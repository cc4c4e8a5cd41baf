// Package kernel combines the elements of two buffers into a third: the
// arithmetic of reductions. It holds one function per operation × element type
// and picks the fastest that this CPU can run, once, at start. It never
// allocates while combining, starts no goroutine and knows no rank.
//
//	f, err := kernel.For(tasks.Sum, tasks.Float32)
//	f(acc, acc, fromPeer) // acc[i] = acc[i] + fromPeer[i]
//	if finish := kernel.Finish(tasks.Average, tasks.Float32, ranks); finish != nil {
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
//   - Average is Sum, divided once at the end by [Finish]; the sum can overflow
//     before. It is not defined on integers, whose quotient would lose its
//     fraction: Sum and divide instead.
//
// [LargestF32], [AddMultiplesF32] and [MultiplyF32] are the parts of exact sums with floats, before and
// after integers are summed.
//
// [CopyPast] is a copy for memory that another processor has in its cache.
//
// Float operations other than Average's division are one IEEE operation per
// element, so assembly and Go give the same bits (complex Prod in Go may be fused
// on some machines).
package kernel

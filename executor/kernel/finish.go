package kernel

import (
	"math/bits"

	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// Scale returns a function that writes a rank's own operand, src, to dst as the combination of so many
// ranks' operands needs it; dst may be src. It is nil if operands are combined as they are, as for all
// but Average of Float16: its operands are divided by the smallest power of two that is not below
// ranks. That is exact, except that a quotient below 2⁻¹⁴ is rounded to a multiple of 2⁻²⁴. It must be
// applied exactly once to each operand.
func Scale(op tasks.Op, t tasks.Datatype, ranks int) func(dst, src []byte) {
	by := shareOf(op, t, ranks)
	if by == 1 {
		return nil
	}
	return divideFloat16(by)
}

// shareOf returns the divisor of operands: a power of two, 1 for those that are combined as they are.
func shareOf(op tasks.Op, t tasks.Datatype, ranks int) float32 {
	if op.ID() != tasks.OpAverage || t != tasks.Float16 {
		return 1
	}
	return float32(uint64(1) << bits.Len(uint(ranks-1)))
}

// Finish returns a function that turns the combination of some of the ranks' operands, n of them after
// [Scale] if there is one, into the result, in place; nil if it is the result already, as for all
// operations but Average. It must be applied exactly once to each element.
func Finish(op tasks.Op, t tasks.Datatype, n, ranks int) func(dst []byte) {
	f := quotient(op, t, n, ranks)
	if f == nil {
		return nil
	}
	return func(dst []byte) { f(dst, dst) }
}

// quotient is the division of Finish; nil: none.
func quotient(op tasks.Op, t tasks.Datatype, combined, ranks int) func(dst, src []byte) {
	if op.ID() != tasks.OpAverage {
		return nil
	}
	n := float32(combined) / shareOf(op, t, ranks)
	switch t {
	case tasks.Float16:
		if n == 1 {
			return nil
		}
		return divideFloat16(n)
	case tasks.BFloat16:
		by := half.NewBFloat16(n)
		return divide(t, by, by.Float32() == n, func(dst, src []half.BFloat16) {
			for i := range dst {
				dst[i] = half.NewBFloat16(src[i].Float32() / n)
			}
		})
	case tasks.Float32, tasks.Complex64: // by parts: complex division would turn infinities into NaN
		return divide(tasks.Float32, n, true, divideBy(n))
	case tasks.Float64, tasks.Complex128:
		return divide(tasks.Float64, float64(combined), true, divideBy(float64(combined)))
	}
	return nil
}

func divideFloat16(n float32) func(dst, src []byte) {
	by := half.NewFloat16(n)
	return divide(tasks.Float16, by, by.Float32() == n, func(dst, src []half.Float16) {
		for i := range dst {
			dst[i] = half.NewFloat16(src[i].Float32() / n)
		}
	})
}

func divideBy[T float](n T) func(dst, src []T) {
	return func(dst, src []T) {
		for i := range dst {
			dst[i] = src[i] / n
		}
	}
}

// divide uses assembly with a slice full of the divisor, unless t can't hold the
// divisor exactly.
func divide[T any](t tasks.Datatype, by T, exact bool, portable func(dst, src []T)) func(dst, src []byte) {
	plain := func(dst, src []byte) { portable(elements[T](dst), elements[T](src)) }
	whole, _ := assembly(opDivide, t)
	if whole == nil || !exact {
		return plain
	}
	f := announce(inBlocks(whole, func(dst, src, _ []byte) { plain(dst, src) }))
	divisor := make([]byte, 4<<10)
	for i := range elements[T](divisor) {
		elements[T](divisor)[i] = by
	}
	return func(dst, src []byte) {
		for len(dst) > 0 {
			n := min(len(dst), len(divisor))
			f(dst[:n], src[:n], divisor[:n])
			dst, src = dst[n:], src[n:]
		}
	}
}

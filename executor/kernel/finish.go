package kernel

import (
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// Finish returns a function that turns the combination of all ranks' operands into the
// result, in place; nil if it is the result already, as for all operations but
// Average. It must be applied exactly once to each element.
func Finish(op tasks.Op, t tasks.Datatype, ranks int) func(dst []byte) {
	if op.ID() != tasks.OpAverage {
		return nil
	}
	n := float32(ranks)
	switch t {
	case tasks.Float16:
		by := half.NewFloat16(n)
		return divide(t, by, by.Float32() == n, func(d []half.Float16) {
			for i := range d {
				d[i] = half.NewFloat16(d[i].Float32() / n)
			}
		})
	case tasks.BFloat16:
		by := half.NewBFloat16(n)
		return divide(t, by, by.Float32() == n, func(d []half.BFloat16) {
			for i := range d {
				d[i] = half.NewBFloat16(d[i].Float32() / n)
			}
		})
	case tasks.Float32, tasks.Complex64: // by parts: complex division would turn infinities into NaN
		return divide(tasks.Float32, n, true, divideBy(n))
	case tasks.Float64, tasks.Complex128:
		return divide(tasks.Float64, float64(ranks), true, divideBy(float64(ranks)))
	}
	return nil
}

func divideBy[T float](n T) func(d []T) {
	return func(d []T) {
		for i := range d {
			d[i] /= n
		}
	}
}

// divide uses assembly with a slice full of the divisor, unless t can't hold the
// divisor exactly.
func divide[T any](t tasks.Datatype, by T, exact bool, portable func(d []T)) func(dst []byte) {
	plain := func(dst []byte) { portable(elements[T](dst)) }
	whole, _ := assembly(opDivide, t)
	if whole == nil || !exact {
		return plain
	}
	f := announce(inBlocks(whole, func(dst, _, _ []byte) { plain(dst) }))
	divisor := make([]byte, 4<<10)
	for i := range elements[T](divisor) {
		elements[T](divisor)[i] = by
	}
	return func(dst []byte) {
		for len(dst) > 0 {
			n := min(len(dst), len(divisor))
			f(dst[:n], dst[:n], divisor[:n])
			dst = dst[n:]
		}
	}
}

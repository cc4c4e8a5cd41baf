package kernel

import (
	"unsafe"

	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type float interface{ float32 | float64 }

type complexNumber interface{ complex64 | complex128 }

// portable is the Go kernel, nil where op isn't defined on t. It defines what is
// allowed; assembly only replaces some of it.
func portable(op tasks.OpID, t tasks.Datatype) Func {
	if v, ok := t.Loc(); ok {
		return portableLoc(op, v)
	}
	switch t {
	case tasks.Int8:
		return integers[int8](op)
	case tasks.Int16:
		return integers[int16](op)
	case tasks.Int32:
		return integers[int32](op)
	case tasks.Int64:
		return integers[int64](op)
	case tasks.Uint8:
		return integers[uint8](op)
	case tasks.Uint16:
		return integers[uint16](op)
	case tasks.Uint32:
		return integers[uint32](op)
	case tasks.Uint64:
		return integers[uint64](op)
	case tasks.Float16:
		return float16s(op)
	case tasks.BFloat16:
		return bfloat16s(op)
	case tasks.Float32:
		return floats[float32](op)
	case tasks.Float64:
		return floats[float64](op)
	case tasks.Complex64:
		return complexes[complex64](op)
	case tasks.Complex128:
		return complexes[complex128](op)
	}
	return nil
}

func integers[T integer](op tasks.OpID) Func {
	switch op {
	case tasks.OpBand:
		return lift(func(dst, a, b []T) {
			for i := range dst {
				dst[i] = a[i] & b[i]
			}
		})
	case tasks.OpBor:
		return lift(func(dst, a, b []T) {
			for i := range dst {
				dst[i] = a[i] | b[i]
			}
		})
	case tasks.OpBxor:
		return lift(func(dst, a, b []T) {
			for i := range dst {
				dst[i] = a[i] ^ b[i]
			}
		})
	case tasks.OpLand:
		return lift(func(dst, a, b []T) {
			for i := range dst {
				dst[i] = truth(a[i]) & truth(b[i])
			}
		})
	case tasks.OpLor:
		return lift(func(dst, a, b []T) {
			for i := range dst {
				dst[i] = truth(a[i] | b[i])
			}
		})
	case tasks.OpLxor:
		return lift(func(dst, a, b []T) {
			for i := range dst {
				dst[i] = truth(a[i]) ^ truth(b[i])
			}
		})
	case tasks.OpAverage:
		return nil
	}
	return reals[T](op)
}

func floats[T float](op tasks.OpID) Func {
	if op == tasks.OpAverage {
		op = tasks.OpSum
	}
	return reals[T](op)
}

// reals holds the common operations of integers and floats. The builtin min and max have our
// NaN and −0.
func reals[T integer | float](op tasks.OpID) Func {
	switch op {
	case tasks.OpMin:
		return lift(func(dst, a, b []T) {
			for i := range dst {
				dst[i] = min(a[i], b[i])
			}
		})
	case tasks.OpMax:
		return lift(func(dst, a, b []T) {
			for i := range dst {
				dst[i] = max(a[i], b[i])
			}
		})
	}
	return numbers[T](op)
}

func complexes[T complexNumber](op tasks.OpID) Func {
	if op == tasks.OpAverage {
		op = tasks.OpSum
	}
	return numbers[T](op)
}

func numbers[T integer | float | complexNumber](op tasks.OpID) Func {
	switch op {
	case tasks.OpSum:
		return lift(func(dst, a, b []T) {
			for i := range dst {
				dst[i] = a[i] + b[i]
			}
		})
	case tasks.OpProd:
		return lift(func(dst, a, b []T) {
			for i := range dst {
				dst[i] = a[i] * b[i]
			}
		})
	}
	return nil
}

// float16s and bfloat16s are written out: through a type parameter every
// conversion would be a call.
func float16s(op tasks.OpID) Func {
	switch op {
	case tasks.OpSum, tasks.OpAverage:
		return lift(func(dst, a, b []half.Float16) {
			for i := range dst {
				dst[i] = half.NewFloat16(a[i].Float32() + b[i].Float32())
			}
		})
	case tasks.OpProd:
		return lift(func(dst, a, b []half.Float16) {
			for i := range dst {
				dst[i] = half.NewFloat16(a[i].Float32() * b[i].Float32())
			}
		})
	case tasks.OpMin:
		return lift(func(dst, a, b []half.Float16) {
			for i := range dst {
				dst[i] = half.NewFloat16(min(a[i].Float32(), b[i].Float32()))
			}
		})
	case tasks.OpMax:
		return lift(func(dst, a, b []half.Float16) {
			for i := range dst {
				dst[i] = half.NewFloat16(max(a[i].Float32(), b[i].Float32()))
			}
		})
	}
	return nil
}

func bfloat16s(op tasks.OpID) Func {
	switch op {
	case tasks.OpSum, tasks.OpAverage:
		return lift(func(dst, a, b []half.BFloat16) {
			for i := range dst {
				dst[i] = half.NewBFloat16(a[i].Float32() + b[i].Float32())
			}
		})
	case tasks.OpProd:
		return lift(func(dst, a, b []half.BFloat16) {
			for i := range dst {
				dst[i] = half.NewBFloat16(a[i].Float32() * b[i].Float32())
			}
		})
	case tasks.OpMin:
		return lift(func(dst, a, b []half.BFloat16) {
			for i := range dst {
				dst[i] = half.NewBFloat16(min(a[i].Float32(), b[i].Float32()))
			}
		})
	case tasks.OpMax:
		return lift(func(dst, a, b []half.BFloat16) {
			for i := range dst {
				dst[i] = half.NewBFloat16(max(a[i].Float32(), b[i].Float32()))
			}
		})
	}
	return nil
}

func truth[T integer](x T) T {
	if x != 0 {
		return 1
	}
	return 0
}

// lift makes a Func of a function on elements. The slices get one length, so
// that the loops need no bounds checks; too short an operand panics.
func lift[T any](f func(dst, a, b []T)) Func {
	return func(dst, a, b []byte) {
		d := elements[T](dst)
		f(d, elements[T](a)[:len(d)], elements[T](b)[:len(d)])
	}
}

// elements views bytes as the elements they hold.
func elements[T any](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

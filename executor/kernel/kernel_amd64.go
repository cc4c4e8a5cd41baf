package kernel

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/tierflow/tierflow/tasks"
)

//go:generate env GOWORK=off go -C gen run . -pkg kernel -out ../kernel_avx2_amd64.s -stubs ../kernel_avx2_amd64.go

var (
	hasAVX2 = cpu.X86.HasAVX2
	hasF16C = cpu.X86.HasF16C
)

// avx2 is the assembly per operation and element type. A complex sum is the sum
// of the parts. What is missing is rare, or not faster than Go.
var avx2 = [tasks.OpUser + 1][tasks.Complex128 + 1]blockFunc{
	tasks.OpSum:     sums,
	tasks.OpAverage: sums,
	tasks.OpProd: {
		tasks.Int16: prodI16, tasks.Uint16: prodI16, tasks.Int32: prodI32, tasks.Uint32: prodI32,
		tasks.Float16: prodF16, tasks.BFloat16: prodBF16, tasks.Float32: prodF32, tasks.Float64: prodF64,
	},
	tasks.OpMin: {
		tasks.Int8: minI8, tasks.Int16: minI16, tasks.Int32: minI32, tasks.Int64: minI64,
		tasks.Uint8: minU8, tasks.Uint16: minU16, tasks.Uint32: minU32, tasks.Uint64: minU64,
		tasks.Float16: minF16, tasks.BFloat16: minBF16, tasks.Float32: minF32, tasks.Float64: minF64,
	},
	tasks.OpMax: {
		tasks.Int8: maxI8, tasks.Int16: maxI16, tasks.Int32: maxI32, tasks.Int64: maxI64,
		tasks.Uint8: maxU8, tasks.Uint16: maxU16, tasks.Uint32: maxU32, tasks.Uint64: maxU64,
		tasks.Float16: maxF16, tasks.BFloat16: maxBF16, tasks.Float32: maxF32, tasks.Float64: maxF64,
	},
	tasks.OpBand: everyInteger(and),
	tasks.OpBor:  everyInteger(or),
	tasks.OpBxor: everyInteger(xor),
	opDivide: {
		tasks.Float16: divideF16, tasks.BFloat16: divideBF16, tasks.Float32: divideF32, tasks.Float64: divideF64,
	},
}

var sums = [tasks.Complex128 + 1]blockFunc{
	tasks.Int8: sumI8, tasks.Int16: sumI16, tasks.Int32: sumI32, tasks.Int64: sumI64,
	tasks.Uint8: sumI8, tasks.Uint16: sumI16, tasks.Uint32: sumI32, tasks.Uint64: sumI64,
	tasks.Float16: sumF16, tasks.BFloat16: sumBF16, tasks.Float32: sumF32, tasks.Float64: sumF64,
	tasks.Complex64: sumF32, tasks.Complex128: sumF64,
}

func everyInteger(f blockFunc) (row [tasks.Complex128 + 1]blockFunc) {
	for t := tasks.Int8; t <= tasks.Uint64; t++ {
		row[t] = f
	}
	return row
}

// assembly returns the kernel and its name, or nil where there is none or the
// CPU can't run it.
func assembly(op tasks.OpID, t tasks.Datatype) (blockFunc, string) {
	if !hasAVX2 || t > tasks.Complex128 || t == tasks.Float16 && !hasF16C {
		return nil, ""
	}
	return avx2[op][t], "avx2"
}

// copyPast copies src to dst past the caches, and reports whether it could.
func copyPast(dst, src []byte) bool {
	if !hasAVX2 || detects {
		return false
	}
	head := int(-uintptr(unsafe.Pointer(&dst[0])) % blockSize)
	n := (len(dst) - head) / blockSize * blockSize
	copy(dst[:head], src[:head])
	past(&dst[head], &src[head], &src[head], n)
	copy(dst[head+n:], src[head+n:])
	return true
}

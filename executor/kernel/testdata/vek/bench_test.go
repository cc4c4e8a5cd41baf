// Package vek compares the kernels with the library github.com/viterin/vek, as a yardstick.
// It is a module of its own: nothing else needs the library.
package vek

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/viterin/vek"
	"github.com/viterin/vek/vek32"

	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkReduce combines in place, acc = acc ⊕ b, with this machine's kernel and with
// vek, whose minimum and maximum don't keep to our NaN and −0.
func BenchmarkReduce(b *testing.B) {
	// One memory for all, so that no implementation gets luckier pages.
	accs, others := make([]byte, 64<<20), make([]byte, 64<<20)
	for _, op := range []tasks.Op{tasks.Sum, tasks.Min} {
		for _, t := range []tasks.Datatype{tasks.Float32, tasks.Float64} {
			ours, err := kernel.For(op, t)
			if err != nil {
				b.Fatal(err)
			}
			for _, size := range []int64{16 << 10, 64 << 20} { // in the first cache, and in none
				for _, impl := range []struct {
					name string
					run  kernel.Func
				}{{kernel.Impl(op, t), ours}, {"vek", theirs(op, t)}} {
					b.Run(fmt.Sprintf("op=%v/type=%v/bytes=%s/impl=%s", op, t, tasks.FormatBytes(size), impl.name), func(b *testing.B) {
						acc, other := accs[:size], others[:size]
						fill(acc, 1)
						fill(other, 2)
						b.SetBytes(size)
						for b.Loop() {
							impl.run(acc, acc, other)
						}
					})
				}
			}
		}
	}
}

// theirs returns vek's in-place function; it takes no a.
func theirs(op tasks.Op, t tasks.Datatype) kernel.Func {
	if t == tasks.Float64 {
		return inPlace(map[tasks.Op]func(x, y []float64){tasks.Sum: vek.Add_Inplace, tasks.Min: vek.Minimum_Inplace}[op])
	}
	return inPlace(map[tasks.Op]func(x, y []float32){tasks.Sum: vek32.Add_Inplace, tasks.Min: vek32.Minimum_Inplace}[op])
}

func inPlace[T any](f func(x, y []T)) kernel.Func {
	return func(dst, _, b []byte) { f(elements[T](dst), elements[T](b)) }
}

// elements views bytes as elements.
func elements[T any](b []byte) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(one)))
}

// fill makes small normal numbers of every float type.
func fill(b []byte, n byte) {
	for i := range b {
		b[i] = 0x3c + n
	}
}

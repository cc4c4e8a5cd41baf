package kernel

import (
	"fmt"
	"testing"

	"github.com/viterin/vek"
	"github.com/viterin/vek/vek32"

	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkReduce combines in place, acc = acc ⊕ b, with each implementation
// there is: ours, its Go twin and, as a yardstick, the library vek (whose minimum
// and maximum don't keep to our NaN and −0).
func BenchmarkReduce(b *testing.B) {
	cases := []struct {
		op    tasks.Op
		types []tasks.Datatype
	}{
		{tasks.Sum, []tasks.Datatype{tasks.Float32, tasks.Float64, tasks.Int32, tasks.Int64, tasks.Float16, tasks.BFloat16}},
		{tasks.Min, []tasks.Datatype{tasks.Float32, tasks.Int32, tasks.Float16}}, // a maximum is the same turned round
		{tasks.Bxor, []tasks.Datatype{tasks.Uint64}},
		{tasks.Land, []tasks.Datatype{tasks.Uint8}},
		{tasks.MinLoc, []tasks.Datatype{tasks.LocOf(tasks.Float64)}},
	}
	sizes := []int64{16 << 10, 64 << 20} // in the first cache, and in none
	// One memory for all, so that no implementation gets luckier pages.
	accs, others := make([]byte, 64<<20), make([]byte, 64<<20)
	for _, c := range cases {
		for _, t := range c.types {
			for _, size := range sizes {
				for _, impl := range withVek(c.op, t) {
					name := fmt.Sprintf("op=%v/type=%v/bytes=%s/impl=%s", c.op, t, tasks.FormatBytes(size), impl.name)
					b.Run(name, func(b *testing.B) {
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

// BenchmarkFinish divides in place.
func BenchmarkFinish(b *testing.B) {
	for _, t := range []tasks.Datatype{tasks.Float32, tasks.Float64, tasks.Float16, tasks.BFloat16} {
		b.Run(fmt.Sprintf("type=%v/bytes=256KiB", t), func(b *testing.B) {
			dst := make([]byte, 256<<10)
			fill(dst, 1)
			divide := Finish(tasks.Average, t, 1)
			b.SetBytes(int64(len(dst)))
			for b.Loop() {
				divide(dst)
			}
		})
	}
}

func withVek(op tasks.Op, t tasks.Datatype) []implementation {
	all := implementationsOf(op, t)
	if f := vekKernel(op, t); f != nil {
		all = append(all, implementation{"vek", f})
	}
	return all
}

// vekKernel is vek's in-place function; it takes no a.
func vekKernel(op tasks.Op, t tasks.Datatype) Func {
	if t == tasks.Float64 {
		return vekInPlace(map[tasks.Op]func(x, y []float64){
			tasks.Sum: vek.Add_Inplace, tasks.Min: vek.Minimum_Inplace, tasks.Max: vek.Maximum_Inplace,
		}[op])
	}
	if t == tasks.Float32 {
		return vekInPlace(map[tasks.Op]func(x, y []float32){
			tasks.Sum: vek32.Add_Inplace, tasks.Min: vek32.Minimum_Inplace, tasks.Max: vek32.Maximum_Inplace,
		}[op])
	}
	return nil
}

func vekInPlace[T any](f func(x, y []T)) Func {
	if f == nil {
		return nil
	}
	return func(dst, _, b []byte) { f(elements[T](dst), elements[T](b)) }
}

// fill makes small normal numbers of every float type.
func fill(b []byte, n byte) {
	for i := range b {
		b[i] = 0x3c + n
	}
}

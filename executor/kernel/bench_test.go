package kernel

import (
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkReduce combines in place, acc = acc ⊕ b, with each implementation
// there is: ours and its Go twin. The module in testdata/vek has a library as a yardstick.
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
				for _, impl := range implementationsOf(c.op, t) {
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
			divide := Finish(tasks.Average, t, 3, 3)
			b.SetBytes(int64(len(dst)))
			for b.Loop() {
				divide(dst)
			}
		})
	}
}

// fill makes small normal numbers of every float type.
func fill(b []byte, n byte) {
	for i := range b {
		b[i] = 0x3c + n
	}
}

package submodules_test

import (
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkCompile compiles one rank, the one with most to do. The hierarchy is
// common to all ranks and requests of a communicator, so it is made outside.
func BenchmarkCompile(b *testing.B) {
	const fs = 64 << 10
	for _, topo := range []string{"4x2", "128x32"} {
		b.Run("coll=allreduce/topo="+topo+"/segments=64", func(b *testing.B) {
			t, err := levels.Parse(topo)
			if err != nil {
				b.Fatal(err)
			}
			p, err := tasks.ParsePlan("shape=han,fs=64KiB,w=4,i=adapt/binomial,s=sm")
			if err != nil {
				b.Fatal(err)
			}
			r := tasks.Request{Coll: tasks.Allreduce, Count: 64 * fs / 4, Type: tasks.Float32, Op: tasks.Sum}
			h, err := tasks.Hierarchy(r, t, p)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			steps := 0
			for b.Loop() {
				prog, err := submodules.CompileFor(r, h, p, 0, all.Submodules())
				if err != nil {
					b.Fatal(err)
				}
				steps = prog.Len()
			}
			b.ReportMetric(float64(steps), "steps")
		})
	}
}

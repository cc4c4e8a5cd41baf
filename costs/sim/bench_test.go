package sim_test

import (
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

const pipelined = "shape=han,fs=64KiB,w=4,i=adapt/binary,s=sm"

func BenchmarkCompile(b *testing.B) {
	for _, topo := range []string{"64x12", "128x32"} {
		b.Run("topo="+topo, func(b *testing.B) {
			r, t, p := problem(b, tasks.Allreduce, topo, 4<<20, pipelined)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := sim.Compile(r, t, p, all.Submodules()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRun(b *testing.B) {
	for _, topo := range []string{"64x12", "128x32"} {
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Allreduce} {
			b.Run("coll="+coll.String()+"/topo="+topo, func(b *testing.B) {
				j := job(b, coll, topo, 4<<20, pipelined)
				var result *sim.Result
				for b.Loop() {
					var err error
					if result, err = j.Run(machine.Assumed(), sim.Options{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(result.Steps)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Msteps/s")
				b.ReportMetric(float64(result.Steps), "steps")
				b.ReportMetric(float64(result.Events), "events")
			})
		}
	}
}

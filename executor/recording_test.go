package executor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkRecorder is what recording costs: a small allreduce with and without.
func BenchmarkRecorder(b *testing.B) {
	for _, topo := range []string{"1x2", "4x2"} {
		for _, events := range []int{-1, 0} {
			b.Run(fmt.Sprintf("topo=%s/on=%t", topo, events == 0), func(b *testing.B) {
				h, p := parse(b, topo, "shape=han,fs=all,w=1,i=adapt/binomial,s=adapt/binomial")
				w := newWorld(b, h.Size(), executor.Config{RecorderEvents: events})
				request := tasks.Request{Coll: tasks.Allreduce, Count: 256, Type: tasks.Float32, Op: tasks.Sum}
				send, recv := make([][]float32, h.Size()), make([][]float32, h.Size())
				for r := range send {
					send[r], recv[r] = make([]float32, 256), make([]float32, 256)
				}
				runs := job{w, h, request, p}.bind(b, raws(send), raws(recv))
				m := newTeam(h.Size(), func(r int) error { return runs[r].Do(context.Background()) })
				b.ReportAllocs()
				for b.Loop() {
					m.once()
				}
				m.dismiss(b)
			})
		}
	}
}

package executor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkRecorder is what recording costs: an allreduce without and with it, in
// turns, so that what else goes on on the machine meets both. It reports the
// lower quartile of each, and their quotient.
func BenchmarkRecorder(b *testing.B) {
	for _, topo := range []string{"1x2", "4x2"} {
		for _, size := range []int64{1 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("topo=%s/size=%s", topo, tasks.FormatBytes(size)), func(b *testing.B) {
				var once [2]func()
				for on, events := range []int{-1, 0} {
					h, p := parse(b, topo, "shape=han,fs=all,w=1,i=adapt/binomial,s=adapt/binomial")
					w := newWorld(b, h.Size(), executor.Config{RecorderEvents: events})
					request := tasks.Request{Coll: tasks.Allreduce, Count: size / 4, Type: tasks.Float32, Op: tasks.Sum, InPlace: true}
					bufs := make([][]byte, h.Size())
					for i := range bufs {
						bufs[i] = make([]byte, size)
					}
					runs := job{w, h, request, p}.bind(b, nil, bufs)
					m := newTeam(h.Size(), func(r int) error { return runs[r].Do(context.Background()) })
					defer m.dismiss(b)
					once[on] = m.once
				}
				const batch = 100
				var took [2][]time.Duration
				for b.Loop() {
					for on := range once {
						began := time.Now()
						for range batch {
							once[on]()
						}
						took[on] = append(took[on], time.Since(began))
					}
				}
				var ns [2]float64
				for on, list := range took {
					slices.Sort(list)
					ns[on] = float64(list[len(list)/4].Nanoseconds()) / batch
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(ns[0], "ns/off")
				b.ReportMetric(ns[1], "ns/on")
				b.ReportMetric(ns[1]/ns[0], "on/off")
			})
		}
	}
}

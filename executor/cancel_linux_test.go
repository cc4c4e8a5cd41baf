package executor_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/proc"
)

// How long after a rank's cancel the last of the others returns, between processes: the median, and the
// 99th of 100.
func BenchmarkCancel(b *testing.B) {
	for _, topo := range []string{"1x4", "4x1"} {
		b.Run("topo="+topo, func(b *testing.B) {
			h, _ := parse(b, topo, "")
			var took []time.Duration
			for b.Loop() {
				p := openProcesses(b, h, proc.Config{}, nil)
				bars := worldBarriers(b, p.World)
				do(b, p.World, bars) // now there are connections
				var asked time.Time
				const canceller, absent = 1, 3
				ranks(b, p.World, func(ctx context.Context, r int) error {
					mine, cancel := context.WithCancelCause(ctx)
					defer cancel(nil)
					switch r {
					case absent:
						return nil
					case canceller:
						go func() { // ends before the call does
							inCall(ctx, p.World, absent)
							asked = time.Now()
							cancel(errEnough)
						}()
					}
					return bars[r].Do(mine)
				})
				took = append(took, time.Since(asked))
				closeProcesses(b, p)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

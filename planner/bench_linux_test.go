package planner_test

import (
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkCollective is what a call takes rank 0, on goroutine ranks and on
// processes, by the plan that the built-in rule chooses. In a bcast rank 0 is the
// root, which waits for others only when they are far behind.
func BenchmarkCollective(b *testing.B) {
	for _, op := range []tasks.Collective{tasks.Bcast, tasks.Allreduce} {
		for _, ranks := range []string{onGoroutines, onProcesses} {
			for _, topo := range []string{"1x2", "2x1", "2x2"} {
				for _, n := range []int64{8, 64 << 10, 4 << 20} {
					name := fmt.Sprintf("op=%v/ranks=%s/topo=%s/bytes=%s", op, ranks, topo, tasks.FormatBytes(n))
					b.Run(name, func(b *testing.B) { duty{what: op.String(), bytes: n}.run(b, ranks, topo) })
				}
			}
		}
	}
}

// BenchmarkRoundTrip sends to another rank and back over each kind of link.
func BenchmarkRoundTrip(b *testing.B) {
	for _, link := range []struct{ name, ranks, topo string }{
		{"inproc", onGoroutines, "1x2"},
		{"shm", onProcesses, "1x2"},
		{"tcp", onProcesses, "2x1"},
	} {
		for _, n := range []int64{8, 4 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("link=%s/bytes=%s", link.name, tasks.FormatBytes(n)), func(b *testing.B) {
				duty{what: "echo", bytes: n}.run(b, link.ranks, link.topo)
				b.SetBytes(2 * n)
			})
		}
	}
}

// BenchmarkGrowth says by how much a rank grows, in its own memory and in what it
// shares, when a collective of 64 MiB is made and called: growth-B, beside window-B,
// the bytes of the segments on their way. Scratch and slots, those of neighbours that
// the rank reads too, are a few windows for any size of message
// (TestMemoryWithinWindow). Rings are the same for all. But programs grow by 1 to 2
// KB with each segment, until there are enough segments for passes.
func BenchmarkGrowth(b *testing.B) {
	for _, op := range []tasks.Collective{tasks.Bcast, tasks.Allreduce} {
		for _, ranks := range []string{onGoroutines, onProcesses} {
			for _, topo := range []string{"1x2", "2x1", "2x2"} {
				b.Run(fmt.Sprintf("op=%v/ranks=%s/topo=%s/bytes=64MiB", op, ranks, topo), func(b *testing.B) {
					c, grown := duty{what: op.String(), bytes: 64 << 20, grows: true}.run(b, ranks, topo)
					r := tasks.Request{Coll: op, Count: 16 << 20, Type: tasks.Float32}
					if r.Reduces() {
						r.Op, r.InPlace = tasks.Sum, true
					}
					p, err := c.Decide(r)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(grown), "growth-B")
					b.ReportMetric(float64(p.Segment*int64(p.Window)), "window-B")
				})
			}
		}
	}
}

// BenchmarkJoin is how long it takes all ranks to enter a job, with the transports
// of processes although they are goroutines of this one.
func BenchmarkJoin(b *testing.B) {
	for _, on := range []struct{ nodes, perNode int }{{8, 1}, {32, 1}, {1, 8}, {4, 4}} {
		b.Run(fmt.Sprintf("topo=%dx%d", on.nodes, on.perNode), func(b *testing.B) {
			for b.Loop() {
				comms := joinProcesses(b, on.nodes*on.perNode, on.perNode, nil)
				b.StopTimer()
				closeAll(b, comms)
				b.StartTimer()
			}
		})
	}
}

package costs_test

import (
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// BenchmarkPredict prices one plan, as a search does for each of thousands.
func BenchmarkPredict(b *testing.B) {
	for _, segments := range []int64{1, 64} {
		b.Run(fmt.Sprintf("op=allreduce/topo=4x2/segments=%d", segments), func(b *testing.B) {
			topo, p, r := tasktest.Topology(b, "4x2"), tasktest.Plan(b, lockstep), request(tasks.Allreduce, segments)
			book := &costs.Book{}
			price(b, book, r, topo, p)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := costs.Predict(r, topo, p, book); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

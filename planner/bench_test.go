package planner_test

import (
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkDecideCached asks for plans that were decided before, by a table: for one
// again and again, or for several in turns.
func BenchmarkDecideCached(b *testing.B) {
	for _, sizes := range [][]int64{{1 << 16}, {1 << 8, 1 << 12, 1 << 16, 1 << 20}} {
		b.Run(fmt.Sprintf("requests=%d", len(sizes)), func(b *testing.B) { decideCached(b, sizes) })
	}
}

func decideCached(b *testing.B, sizes []int64) {
	comms, err := planner.Local("4x2", &planner.Options{Table: recordedFile})
	if err != nil {
		b.Fatal(err)
	}
	defer closeComms(comms)
	all := requests("allreduce", sizes...)
	for _, r := range all {
		if _, err := comms[0].Decide(r); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := comms[0].Decide(all[i%len(all)]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecideNew decides by a table what was never asked before.
func BenchmarkDecideNew(b *testing.B) {
	comms, err := planner.Local("4x2", &planner.Options{Table: recordedFile})
	if err != nil {
		b.Fatal(err)
	}
	defer closeComms(comms)
	r := tasks.Request{Coll: tasks.Allreduce, Type: tasks.Float32, Op: tasks.Sum}
	for b.Loop() {
		r.Count++
		if _, err := comms[0].Decide(r); err != nil {
			b.Fatal(err)
		}
	}
}

func closeComms(comms []*planner.Comm) {
	for _, c := range comms {
		_ = c.Close()
	}
}

package planner_test

import (
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkDecideCached asks for a plan that was decided before, by a table.
func BenchmarkDecideCached(b *testing.B) {
	comms, err := planner.Local("4x2", &planner.Options{Table: recordedFile})
	if err != nil {
		b.Fatal(err)
	}
	defer closeComms(comms)
	r := tasks.Request{Coll: tasks.Allreduce, Count: 1 << 16, Type: tasks.Float32, Op: tasks.Sum}
	if _, err := comms[0].Decide(r); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := comms[0].Decide(r); err != nil {
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

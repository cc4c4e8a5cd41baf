package builtin_test

import (
	"testing"

	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// BenchmarkChoose chooses a plan that nobody has asked for before. outline is the part of it that
// finds out which kinds of tasks there are.
func BenchmarkChoose(b *testing.B) {
	on := tasktest.Topology(b, "4x2")
	for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Allreduce} {
		r := tasktest.Request(coll, 4<<16)
		b.Run(coll.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				builtin.Ask(r, on).Choose(tasks.Plan{})
			}
		})
		b.Run(coll.String()+"/outline", func(b *testing.B) {
			p, _ := builtin.Choose(r, on, tasks.Plan{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := builtin.Ask(r, on).Outline(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParse reads the built-in rules, as each process does once.
func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := rules.Parse("builtin.rules", builtin.Text); err != nil {
			b.Fatal(err)
		}
	}
}

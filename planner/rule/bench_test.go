package rule_test

import (
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkChoose chooses a plan that nobody has asked for before. outline is the part of it that
// finds out which kinds of tasks there are.
func BenchmarkChoose(b *testing.B) {
	on, err := levels.Parse("4x2")
	if err != nil {
		b.Fatal(err)
	}
	for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Allreduce} {
		r := tasks.Request{Coll: coll, Count: 1 << 16, Type: tasks.Float32}
		if r.Reduces() {
			r.Op = tasks.Sum
		}
		b.Run(coll.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rule.Ask(r, on).Choose(tasks.Plan{})
			}
		})
		b.Run(coll.String()+"/outline", func(b *testing.B) {
			p, _ := rule.Choose(r, on, tasks.Plan{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rule.Ask(r, on).Outline(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParse reads the built-in rules, as each process does once.
func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := rules.Parse("builtin.rules", rule.Text); err != nil {
			b.Fatal(err)
		}
	}
}

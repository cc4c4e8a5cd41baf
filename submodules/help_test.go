package submodules_test

import (
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// compile makes the programs of all ranks.
func compile(t testing.TB, r tasks.Request, spec, plan string) []*submodules.Program {
	t.Helper()
	topo, err := levels.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := tasks.ParsePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	h, err := tasks.Hierarchy(r, topo, p)
	if err != nil {
		t.Fatal(err)
	}
	progs := make([]*submodules.Program, topo.Size())
	for rank := range progs {
		if progs[rank], err = submodules.CompileFor(r, h, p, levels.Rank(rank), all.Submodules()); err != nil {
			t.Fatal(err)
		}
	}
	return progs
}

func bcast(bytes int64, root levels.Rank) tasks.Request {
	return tasks.Request{Coll: tasks.Bcast, Count: bytes, Type: tasks.Uint8, Root: root}
}

func allreduce(bytes int64) tasks.Request {
	return tasks.Request{Coll: tasks.Allreduce, Count: bytes, Type: tasks.Uint8, Op: tasks.Sum}
}

// usedSpan is private memory that a task's step works on.
type usedSpan struct {
	tasks.Span
	task dag.ID
}

// ownMemory lists the spans of scratch and slots that a program uses.
func ownMemory(p *submodules.Program) []usedSpan {
	var all []usedSpan
	for _, s := range p.Steps() {
		for _, span := range []tasks.Span{s.Dst, s.A, s.B} {
			if span.Region == tasks.Scratch || span.Region == tasks.Slot {
				all = append(all, usedSpan{span, s.Task})
			}
		}
	}
	return all
}

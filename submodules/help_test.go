package submodules_test

import (
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/submoduletest"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// compile makes the programs of all ranks.
func compile(t testing.TB, r tasks.Request, spec, plan string) []*submodules.Program {
	t.Helper()
	return submoduletest.Compile(t, r, tasktest.Topology(t, spec), tasktest.Plan(t, plan), all.Submodules())
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

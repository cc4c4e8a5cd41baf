package submoduletest

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// failer is what a test fails by: a *testing.T, a *rapid.T or a double of one.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Compile makes the programs of all ranks, of the first part if the plan cuts the request.
func Compile(t failer, r tasks.Request, on *levels.Topology, p tasks.Plan, reg submodules.Registry) []*submodules.Program {
	t.Helper()
	cut, err := tasks.CutRequest(r, on, p)
	if err != nil {
		t.Fatalf("%v on %v with %v: %v", r, on, p, err)
	}
	progs := make([]*submodules.Program, on.Size())
	for rank := range progs {
		if progs[rank], err = submodules.CompileFor(cut.Parts()[0], cut.On, p, levels.Rank(rank), reg); err != nil {
			t.Fatalf("%v on %v with %v, rank %d: %v", r, on, p, rank, err)
		}
	}
	return progs
}

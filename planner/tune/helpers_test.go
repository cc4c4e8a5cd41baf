package tune_test

import (
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// recordedFile was tuned on goroutine ranks over emulated links, as it says.
const recordedFile = "../../testdata/tables/recorded.json"

func parse(t testing.TB, text string) *table.Table {
	t.Helper()
	made, err := table.Parse("test.json", []byte(text), all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// compileAll compiles a plan for all ranks.
func compileAll(t testing.TB, r tasks.Request, on *levels.Topology, p tasks.Plan) {
	t.Helper()
	cut, err := tasks.CutRequest(r, on, p)
	if err != nil {
		t.Fatalf("%v on %v with %v: %v", r, on, p, err)
	}
	for rank := range levels.Rank(on.Size()) {
		if _, err := submodules.CompileFor(cut.Parts()[0], cut.On, p, rank, all.Submodules()); err != nil {
			t.Fatalf("%v on %v with %v, rank %d: %v", r, on, p, rank, err)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

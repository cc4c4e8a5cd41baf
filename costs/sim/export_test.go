package sim

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// CompileEach is [Compile] without folding.
func CompileEach(r tasks.Request, t *levels.Topology, p tasks.Plan, reg submodules.Registry) (*Job, error) {
	return (&Compilation{Request: r, Topology: t, Plan: p, Registry: reg, unfolded: true}).Job()
}

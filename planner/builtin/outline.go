package builtin

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Outline returns the task graph of r without any elements. Its phases are r's.
func Outline(r tasks.Request, t *levels.Topology, p tasks.Plan) (*tasks.Graph, error) {
	return Ask(r, t).Outline(p)
}

// KindsAt lists the kinds of tasks of a level, in all ranks and for any count.
func KindsAt(g *tasks.Graph, level int) (kinds []tasks.Kind) {
	for _, ph := range g.Phases {
		if ph.Level == level {
			kinds = append(kinds, ph.Kind)
		}
	}
	return kinds
}

// Fits returns the outline of r if reg can compile r with p on t, or else why it cannot.
func Fits(r tasks.Request, t *levels.Topology, p tasks.Plan, reg submodules.Registry) (*tasks.Graph, error) {
	return Ask(r, t).Fits(p, reg)
}

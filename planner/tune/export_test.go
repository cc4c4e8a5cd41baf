package tune

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Pruned says why the heuristics leave a plan out; empty: they don't.
func (s Space) Pruned(r tasks.Request, t *levels.Topology, p tasks.Plan) string {
	s.Heuristics = true
	return s.reject(r, t, p)
}

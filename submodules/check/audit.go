package check

import (
	"slices"

	"github.com/tierflow/tierflow/tasks"
)

// graphs are task graphs that differ in their edges. Ranks of one role have equal ones.
type graphs []*tasks.Graph

// add audits a graph, unless it has the edges of one before: an audit takes longer than compiling.
func (all *graphs) add(g *tasks.Graph) error {
	known := func(o *tasks.Graph) bool { return o.Len() == g.Len() && slices.Equal(o.Edges(), g.Edges()) }
	if slices.ContainsFunc(*all, known) {
		return nil
	}
	*all = append(*all, g)
	return g.Audit()
}

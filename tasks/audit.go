package tasks

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/dag"
)

// Audit has the graph judged by algorithms of another library, see [dag.Graph.Audit]. The error names
// the rank and, if tasks wait for each other in a cycle, all of them; it wraps the [*dag.CycleError].
// It takes about as long as compiling the graph.
func (g *Graph) Audit() error {
	err := g.Graph.Audit()
	var c *dag.CycleError
	if errors.As(err, &c) {
		var names strings.Builder
		for _, id := range append(c.Cycle, c.Cycle[0]) {
			fmt.Fprintf(&names, " -> %v", g.Node(id))
		}
		err = fmt.Errorf("tasks wait for each other, %s: %w", strings.TrimPrefix(names.String(), " -> "), err)
	}
	if err != nil {
		return fmt.Errorf("task graph of rank %d, %v with plan %q: %w", g.Rank, g.Request, g.Plan, err)
	}
	return nil
}

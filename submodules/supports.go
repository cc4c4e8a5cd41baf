package submodules

import "github.com/tierflow/tierflow/tasks"

// Supports reports why the registry can't do the choices of a graph's plan, as [Compile] would,
// without lowering anything: it looks at each phase once. The answer is the same for all ranks
// and counts, so a graph of any rank and of no elements serves.
func (r Registry) Supports(g *tasks.Graph) error {
	c := compiler{reg: r}
	return c.resolveAll(g)
}

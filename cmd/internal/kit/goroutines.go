package kit

import (
	"fmt"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
)

// Goroutines is a job of goroutines of this process.
type Goroutines struct {
	topology *levels.Topology
	link     *link
	table    string      // of decisions; empty: the environment's
	Hooks    trace.Hooks // called at each step of all ranks
}

var _ Job = Goroutines{}

// Topology returns the one of --topo.
func (g Goroutines) Topology() *levels.Topology { return g.topology }

// Local makes a world of its own for each communicator.
func (g Goroutines) Local(plan string) ([]*planner.Comm, error) {
	return planner.LocalOn(g.topology, &planner.Options{
		Plan: plan, Table: g.table, Hooks: g.Hooks, Managed: isManaged(),
		Link: g.link.shaper(g.topology), Links: g.link.String(),
	})
}

// String describes the job for headers.
func (g Goroutines) String() string {
	return fmt.Sprintf("%v: %s; %v", g.topology, ranksOn(g.topology), g.link)
}

func ranksOn(t *levels.Topology) string {
	return fmt.Sprintf("%d goroutine rank%s on %d node%s", t.Size(), Plural(t.Size()), t.Nodes(), Plural(t.Nodes()))
}

// Links says whether links are emulated, and how.
func (g Goroutines) Links() string { return g.link.String() }

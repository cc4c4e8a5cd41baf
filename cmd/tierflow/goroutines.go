package main

import (
	"fmt"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
)

// goroutines is the job whose ranks are all in this process.
type goroutines struct {
	topology *levels.Topology
	link     *link
	table    string // of decisions; empty: the environment's
	hooks    trace.Hooks
}

var _ job = goroutines{}

// Topology is the one that was asked for.
func (g goroutines) Topology() *levels.Topology { return g.topology }

// Local makes a world of its own for each communicator.
func (g goroutines) Local(plan string) ([]*planner.Comm, error) {
	return planner.LocalOn(g.topology, &planner.Options{Plan: plan, Table: g.table, Hooks: g.hooks, Link: g.link.shaper(g.topology)})
}

// String is for headers.
func (g goroutines) String() string {
	return fmt.Sprintf("%v: %s; %v", g.topology, ranksOn(g.topology), g.link)
}

func ranksOn(t *levels.Topology) string {
	return fmt.Sprintf("%d goroutine rank%s on %d node%s", t.Size(), plural(t.Size()), t.Nodes(), plural(t.Nodes()))
}

// Links says whether and how links are emulated.
func (g goroutines) Links() string { return g.link.String() }

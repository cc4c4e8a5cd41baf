package tasks_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// A cycle among tasks is an error with their names.
func TestAuditNamesTasks(t *testing.T) {
	p := tasktest.Plan(t, "shape=han,fs=400,w=2,i=adapt/binomial,s=sm")
	g, err := tasks.Expand(tasktest.Request(tasks.Bcast, 1200), tasktest.Topology(t, "2x2"), p, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Audit(); err != nil {
		t.Fatal(err)
	}
	ends := map[string]dag.ID{}
	for id, task := range g.Nodes() {
		ends[task.String()] = dag.ID(id)
	}
	g.Connect(ends["sb#1"], ends["ib#1"], tasks.DataEdge)
	err = g.Audit()
	var c *dag.CycleError
	if !errors.As(err, &c) {
		t.Fatalf("%v, want a cycle", err)
	}
	for _, want := range []string{"task graph of rank 0, bcast", "tasks wait for each other, ib#1 -> sb#1 -> ib#1: dag: cycle"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, without %q", err, want)
		}
	}
}

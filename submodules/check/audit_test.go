package check

import (
	"errors"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Graphs with equal edges are audited once, one with another edge again.
func TestGraphsAreAuditedOnce(t *testing.T) {
	graph := func(bytes int64) *tasks.Graph {
		p := tasktest.Plan(t, "shape=han,fs=4,w=2,i=adapt/binomial,s=sm")
		g, err := tasks.Expand(tasktest.Request(tasks.Bcast, bytes), tasktest.Topology(t, "2x2"), p, 0)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	var all graphs
	for range 2 {
		if err := all.add(graph(40)); err != nil || len(all) != 1 {
			t.Fatalf("%v, %d graphs", err, len(all))
		}
	}
	cyclic := graph(40)
	cyclic.Connect(dag.ID(cyclic.Len()-1), 0, tasks.DataEdge)
	if err := all.add(cyclic); !errors.Is(err, dag.ErrCycle) {
		t.Errorf("%v, want a cycle", err)
	}
}

package builtin_test

import (
	"testing"

	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Plans of a shape have one hierarchy, which a question makes once.
func TestHierarchyIsMadeOnce(t *testing.T) {
	on := tasktest.Topology(t, "4x3")
	asked := builtin.Ask(tasks.Request{Coll: tasks.Allreduce, Count: 1 << 20, Type: tasks.Float32, Op: tasks.Sum}, on)
	p, _ := asked.Choose(tasks.Plan{})
	g, err := asked.Outline(p)
	if err != nil {
		t.Fatal(err)
	}
	p.Segment = tasks.Whole
	if h, err := asked.Hierarchy(p); err != nil || h != g.On {
		t.Errorf("another hierarchy for the same shape: %v", err)
	}
	p.Shape = tasks.Flat
	if h, err := asked.Hierarchy(p); err != nil || h == g.On || h.Depth() != 1 {
		t.Errorf("a flat plan has the hierarchy of %v: %v", g.On, err)
	}
	p.Shape = tasks.SAG // which an allreduce doesn't have
	if _, err := asked.Hierarchy(p); err == nil {
		t.Error("an allreduce by scatter and allgather is no error")
	}
}

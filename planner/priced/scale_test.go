package priced_test

import (
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Small jobs are simulated rank by rank, as they are; of large ones a node stands for all, or closed forms do.
func TestScale(t *testing.T) {
	m, reg := machine.Assumed(), all.Submodules()
	r := tasktest.Request(tasks.Allreduce, 1<<10)
	plan := tasktest.Plan(t, "shape=han,fs=all,w=1,sr=sm/rings,ir=adapt/binomial,ib=adapt/binomial,sb=sm/rings")
	takes := func(on *levels.Topology) float64 { return simulated(t, m, r, on, plan) }
	few, more := tasktest.Topology(t, "3x2"), tasktest.Topology(t, "5x3")
	here, there, known := priced.Scale(m, builtin.Ask(r, few), builtin.Ask(r, more), plan, reg)
	if want, its := takes(few), takes(more); !known || here != want || there != its {
		t.Errorf("3x2 and 5x3: %v and %v, %v; want %v and %v", here, there, known, want, its)
	}
	many := tasktest.Topology(t, "2048x2")
	here, there, known = priced.Scale(m, builtin.Ask(r, few), builtin.Ask(r, many), plan, reg)
	if !known || here < takes(few)/2 || there < 3*here {
		t.Errorf("3x2 and 2048x2: %v and %v, %v; want eleven rounds in place of two", here, there, known)
	}
	unfit := tasktest.Plan(t, "shape=han,fs=all,w=1,sr=sm/rings,ir=adapt/binomial,ib=adapt/binomial")
	if here, there, known := priced.Scale(m, builtin.Ask(r, few), builtin.Ask(r, more), unfit, reg); known {
		t.Errorf("a plan without sb takes %v and %v", here, there)
	}
}

package planner

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// Decide is the plan that a communicator would choose.
func (c *Comm) Decide(r tasks.Request) (tasks.Plan, error) {
	d, err := c.decide(r)
	if err != nil {
		return tasks.Plan{}, err
	}
	return d.plan, nil
}

// DecideBy is the plan that a table leads to, and whether it is the table's.
func DecideBy(t *table.Table, r tasks.Request, on *levels.Topology) (p tasks.Plan, byTable bool, err error) {
	d, err := policy{registry: all.Submodules(), table: &loadedTable{t, "a table"}}.choose(r, on)
	if err != nil {
		return p, false, err
	}
	return d.plan, d.advice.chosen >= 0, nil
}

// EstimateBy is what a table says a plan takes, in ns; 0 if it doesn't.
func EstimateBy(t *table.Table, r tasks.Request, on *levels.Topology, p tasks.Plan) float64 {
	for _, e := range t.Find(r, on, "").Estimates {
		if e.Plan.Equal(p) {
			return e.NS
		}
	}
	return 0
}

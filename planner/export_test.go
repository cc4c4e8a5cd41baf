package planner

import "github.com/tierflow/tierflow/tasks"

// Decide is the plan that a communicator would choose.
func (c *Comm) Decide(r tasks.Request) (tasks.Plan, error) {
	d, err := c.decide(r)
	if err != nil {
		return tasks.Plan{}, err
	}
	return d.plan, nil
}

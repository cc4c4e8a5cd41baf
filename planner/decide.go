package planner

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/tasks"
)

// decideOrTry returns the decision for making a collective. With [EffortMeasure] the ranks try plans
// for a new request.
func (c *Comm) decideOrTry(ctx context.Context, r tasks.Request) (*choose.Decision, error) {
	d, err := c.decide(&r, &c.base)
	if err != nil || !c.common.Tries || r.Op.ID() == tasks.OpUser && r.Reduces() {
		return d, err
	}
	c.trials.mu.Lock()
	defer c.trials.mu.Unlock()
	if known := c.trials.known[r.Shared()]; known != nil {
		return known, nil
	}
	if !d.IsOpen() {
		return d, nil
	}
	first := *d
	q, err := choose.Ask(r, c.topology, c.registry, c.common.Links)
	if err != nil {
		return nil, err
	}
	plans, err := first.Finalists(q, c.machine, trialPlans)
	if err != nil {
		return nil, err
	}
	if len(plans) > 1 {
		m, err := c.tryPlans(ctx, r, plans)
		if err != nil {
			return nil, fmt.Errorf("%v: try plans: %w", r, err)
		}
		if len(m.Trials) > 1 {
			c.remember(c.world, &c.base, r, m)
		}
		plan, _ := m.Plan()
		first = choose.Decision{Plan: plan, Answers: []choose.Answer{first.Answers[0], m}}
	}
	c.trials.keep(r, &first, c.memo)
	return &first, nil
}

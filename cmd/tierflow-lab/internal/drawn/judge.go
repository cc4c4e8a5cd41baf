package drawn

import (
	"context"
	"errors"
	"testing/fstest"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// verdict is the outcomes of a cell.
type verdict struct {
	Cell       uint64  `json:"cell"`
	Collective string  `json:"collective"`
	Topo       string  `json:"topo"`
	Bytes      int64   `json:"bytes"`
	Plans      int     `json:"plans"`
	LeftOut    int     `json:"left_out"` // plans of too many steps
	Chosen     outcome `json:"chosen"`
	Rule       outcome `json:"rule"`
	Best       outcome `json:"best"`
}

// outcome is a plan and its time.
type outcome struct {
	Plan  string  `json:"plan"`
	NS    float64 `json:"simulated_ns"`
	Ratio float64 `json:"ratio"` // to the best
}

// judging is how cells are judged.
type judging struct {
	reg   submodules.Registry
	steps int64 // of a chosen plan, at most
}

// errLarge says that a cell takes too long.
var errLarge = errors.New("the chosen plan has too many steps")

// mostOfBest is how many times the most steps of a chosen plan any other one may have.
const mostOfBest = 8

// judge simulates the catalogue's plans for a cell. A plan that is slower than the best so far
// isn't simulated to its end.
func (j *judging) judge(ctx context.Context, c *cell) (*verdict, error) {
	data, err := c.machine.Format()
	if err != nil {
		return nil, err
	}
	chosen, err := planner.Decide(c.request, c.on, &planner.Options{Machine: "machine", Files: fstest.MapFS{"machine": {Data: data}}})
	if err != nil {
		return nil, err
	}
	asked := builtin.Ask(c.request, c.on)
	ruled, _ := asked.Choose(tasks.Plan{})
	v := &verdict{Cell: c.number, Collective: c.request.Coll.String(), Topo: c.topo, Bytes: c.request.Bytes()}
	if v.Chosen, err = j.simulate(ctx, c, chosen, j.steps, 0); err != nil {
		return nil, err
	}
	if v.Rule, err = j.simulate(ctx, c, ruled, mostOfBest*j.steps, 0); err != nil {
		return nil, err
	}
	if v.Best = v.Chosen; v.Rule.NS < v.Best.NS {
		v.Best = v.Rule
	}
	all := plans.All(asked, ruled, j.reg)
	v.Plans = len(all)
	for _, p := range all {
		o, err := j.simulate(ctx, c, p, mostOfBest*j.steps, v.Best.NS)
		switch {
		case errors.Is(err, errLarge):
			v.LeftOut++
		case errors.Is(err, sim.ErrLimit):
		case err != nil:
			return nil, err
		case o.NS < v.Best.NS:
			v.Best = o
		}
	}
	v.Best.Ratio, v.Chosen.Ratio, v.Rule.Ratio = 1, v.Chosen.NS/v.Best.NS, v.Rule.NS/v.Best.NS
	return v, nil
}

// simulate returns what a plan of at most so many steps takes. One that takes longer than limit
// is an error, ns; 0: there is no limit.
func (j *judging) simulate(ctx context.Context, c *cell, p tasks.Plan, steps int64, limit float64) (outcome, error) {
	what := &sim.Compilation{Request: c.request, Topology: c.on, Plan: p, Registry: j.reg, Check: ctx.Err}
	need, err := what.Need()
	if err != nil {
		return outcome{}, err
	}
	if need.Steps > steps {
		return outcome{}, errLarge
	}
	ns, err := labkit.Simulate(ctx, what, c.machine, limit)
	return outcome{Plan: p.String(), NS: ns}, err
}

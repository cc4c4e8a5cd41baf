package planner

import (
	"context"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// Decide is the plan that a communicator would choose.
func (c *Comm) Decide(r tasks.Request) (tasks.Plan, error) {
	d, err := c.decide(&r, &c.base)
	if err != nil {
		return tasks.Plan{}, err
	}
	return d.Plan, nil
}

// DecideBy is the plan that a table leads to, and whether it is the table's.
func DecideBy(t *table.Table, r tasks.Request, on *levels.Topology) (p tasks.Plan, byTable bool, err error) {
	d, err := policy{table: &choose.Table{Table: t, Origin: "a table"}}.choose(r, on, all.Submodules())
	if err != nil {
		return p, false, err
	}
	_, byTable = d.FromTable().Plan()
	return d.Plan, byTable, nil
}

// EstimateBy is what a table says a plan takes, in ns; 0 if it doesn't.
func EstimateBy(t *table.Table, r tasks.Request, on *levels.Topology, p tasks.Plan) float64 {
	for _, e := range t.Find(r, on, "", all.Submodules()).Estimates {
		if e.Plan.Equal(p) {
			return e.NS
		}
	}
	return 0
}

// MeasureMachine measures the machine as joining a job may do. All ranks must call it.
func (c *Comm) MeasureMachine(ctx context.Context, keep string) error {
	c.machineSource.keep = keep
	return c.measureMachine(ctx, &c.base, c.Secured() != "")
}

// EnterWith makes the first calls of a rank that joins with a kept machine, and reports whether the
// machine stays. All ranks must call it.
func (c *Comm) EnterWith(ctx context.Context, data []byte) (bool, error) {
	m, err := parseMachine("kept", data)
	if err != nil {
		return false, err
	}
	c.machineSource = machineSource{machine: m, measures: true, checks: true}
	e := entry{comm: c}
	err = e.call(ctx)
	return c.machine == m, err
}

// FindKept returns the file for the machine of a job on t, and whether the job finds one in it.
func FindKept(t *levels.Topology) (file string, found bool) {
	s := machineSource{auto: true}.onJob(&join.Job{Topology: t}, "", true)
	return s.keep, s.checks && s.machine != nil
}

// Hastily begins the method of a machine that ranks measured when they joined.
const Hastily = choose.Hastily

// Kept is how many one-shot calls are kept.
func (c *Comm) Kept() int { return c.store.kept.n }

// Keeps reports whether a one-shot call of so many bytes is kept.
func (c *Comm) Keeps(bytes int64) bool {
	for u := range c.store.kept.programs {
		if u.request.Bytes() == bytes {
			return true
		}
	}
	return false
}

// TryFor bounds trials of plans until the test ends.
func TryFor(t interface{ Cleanup(func()) }, limit time.Duration) {
	was := trialTime
	t.Cleanup(func() { trialTime = was })
	trialTime = limit
}

// KeepTrial lets a plan be that of a trial which the ranks have made for a request.
func (c *Comm) KeepTrial(r tasks.Request, p tasks.Plan) {
	c.trials.mu.Lock()
	defer c.trials.mu.Unlock()
	c.trials.keep(r, &choose.Decision{Plan: p, Answers: []choose.Answer{&choose.Measured{Trials: []choose.Trial{{Plan: p, NS: 1, Calls: 1}}}}}, c.memo)
}

package tune

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Meter measures. Every rank calls it with the same arguments in the same order,
// and all get the same results. *[measure.Bench] is one.
type Meter interface {
	Collective(ctx context.Context, r tasks.Request, p tasks.Plan, stop stats.Stop) (measure.Timing, error)
	Task(ctx context.Context, r tasks.Request, p tasks.Plan, phases []int, segments int64, stop stats.Stop) (costs.Pipeline, error)
}

// sideways is a meter that can measure beside itself.
type sideways interface {
	// Beside calls f for all numbers below n, some at the same time, and returns when all
	// calls have.
	Beside(n int, f func(i int))
}

var (
	_ Meter = (*measure.Bench)(nil)
	_ Meter = (*measure.Simulated)(nil)

	_ sideways = (*measure.Simulated)(nil)
)

// NewSimulatedMeter returns a meter with the times of a described machine and the
// ranks of t. It stands for all ranks: one caller uses it, without a communicator. A
// table of its times must say so, see its Provenance.
func NewSimulatedMeter(t *levels.Topology, m *machine.Machine, reg submodules.Registry) Meter {
	return measure.NewSimulated(t, m, reg)
}

// NewMeter makes this rank's end of a bench that measures on c's links, whole collectives
// in a regime. All ranks of c must call it, and make nothing else run on c while a
// measurement does. A table of its times must name the regime, see its Provenance.
func NewMeter(ctx context.Context, c *planner.Comm, regime costs.Regime) (Meter, error) {
	b, err := benchOn(ctx, c)
	if err != nil {
		return nil, err
	}
	b.Regime = regime
	return b, nil
}

// NewBench makes a communicator of the same ranks as c to measure on. Every rank of c
// must call it.
func NewBench(ctx context.Context, c *planner.Comm) (*measure.Bench, error) {
	d, err := c.Dup(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	return benchOn(ctx, d)
}

func benchOn(ctx context.Context, c *planner.Comm) (*measure.Bench, error) {
	if ctx == nil {
		return nil, fmt.Errorf("measure: %w", errNoContext)
	}
	comm, registry, err := raw.Under(c)
	if err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	return measure.New(ctx, comm, c.Topology(), registry)
}

// Complaints about arguments that are nil or zero.
var (
	errNoContext     = inside.ErrNoContext
	errNoMeter       = errors.New("the meter is nil; allowed are those that NewMeter and NewBench make")
	errNoExperiments = errors.New("this meter runs no experiments; allowed are those that NewMeter, NewBench and NewSimulatedMeter make")
	errNoTopology    = errors.New("the topology is nil or zero; allowed are those that package levels makes")
)

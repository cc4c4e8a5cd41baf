package tune

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// AddSimulateFlag adds --simulate.
func (u *Tuning) AddSimulateFlag(c *cobra.Command) {
	c.Flags().StringVar(&u.File, "simulate", "", kit.SimulateText)
}

// RunAnywhere calls f for each rank of the job, or once if a machine is simulated.
func (u *Tuning) RunAnywhere(ctx context.Context, stdout, stderr io.Writer, f func(ctx context.Context, r *Rank) error) error {
	if u.File != "" {
		return u.runSimulated(ctx, stdout, stderr, f)
	}
	return u.runOnJob(ctx, stdout, stderr, f)
}

// SimulatedNeed tells the need of the largest simulations of requests, as many beside each other
// as there are processors, of the built-in rule's plans. It complains if they don't fit.
func (u *Tuning) SimulatedNeed(ctx context.Context, on *levels.Topology, requests []tasks.Request) (string, error) {
	largest := map[tasks.Collective]tasks.Request{}
	for _, r := range requests {
		if have, known := largest[r.Coll]; !known || r.Bytes() > have.Bytes() {
			largest[r.Coll] = r
		}
	}
	var most sim.Need
	beside := runtime.GOMAXPROCS(0)
	for _, r := range largest {
		c := &sim.Compilation{Request: r, Topology: on, Plan: u.Space.Rule(r, on), Registry: u.Registry, Check: ctx.Err}
		need, err := kit.CheckSimulation(c, beside)
		if err != nil {
			return "", err
		}
		most.Steps, most.Bytes = max(most.Steps, need.Steps), max(most.Bytes, need.Bytes)
	}
	what := fmt.Sprintf("simulating up to %d steps on %d ranks for a measurement, %d measurements beside each other", most.Steps, on.Size(), beside)
	return kit.NeedText(what, most.Bytes*int64(beside)), nil
}

// SimulatedTime returns how long the measurements so far would have taken on the simulated
// machine; 0 if there are ranks.
func (r *Rank) SimulatedTime() time.Duration {
	if r.parts != nil {
		return r.parts.Spent()
	}
	if s, ok := r.Meter.(interface{ Spent() time.Duration }); ok {
		return s.Spent()
	}
	return 0
}

// Seconds returns the time since begin. On a simulated machine it is the simulated time since
// then.
func (r *Rank) Seconds(begin time.Time, simulated time.Duration) float64 {
	if r.Simulated != "" {
		return (r.SimulatedTime() - simulated).Seconds()
	}
	return time.Since(begin).Seconds()
}

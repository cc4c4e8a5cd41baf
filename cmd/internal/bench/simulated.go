package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
)

// runSimulated prints simulated times in place of measured ones.
func (b *Coll) runSimulated(ctx context.Context, operand string, stdout, stderr io.Writer) error {
	for _, name := range []string{"iters", "time", "wire", "alloc", "samples"} {
		if b.IsGiven(name) {
			return kit.Usagef("--%s: a simulation with --simulate has no such thing", name)
		}
	}
	s, err := b.ReadSimulated(b.file)
	if err != nil {
		return err
	}
	if err := b.Read(operand); err != nil {
		return err
	}
	bar, err := b.simulatedProgress(ctx, stderr)
	if err != nil {
		return err
	}
	defer bar.Finish()
	b.Results = Results{Out: stdout, JSON: b.json, plain: true, named: len(b.given) > 1, roots: b.every > 0, origin: newProvenance(s, "")}
	fmt.Fprintf(notesOut(b.json, stdout, stderr), "# %v\n# times are simulated: slowest rank's; algbw, busbw: 1 GB is 1e9 bytes\n", s)
	if err := b.Results.printHead(); err != nil {
		return err
	}
	meter := tune.NewSimulatedMeter(s.Topology(), s.Machine, b.Registry)
	for i, r := range b.Work {
		bar.Show(int64(i), int64(len(b.Work)))
		for _, plan := range b.plans {
			row, err := b.simulate(ctx, meter, r, plan)
			if err != nil {
				return err
			}
			row.Simulated = s.MachineName()
			if err := b.Results.addRow(row); err != nil {
				return err
			}
		}
	}
	return b.Results.printEnd()
}

// simulatedProgress tells the need of the largest simulation, and complains if it doesn't fit.
func (b *Coll) simulatedProgress(ctx context.Context, stderr io.Writer) (*kit.Progress, error) {
	t, need := b.Job.Topology(), ""
	largest := slices.MaxFunc(b.Work, func(a, b tasks.Request) int { return cmp.Compare(a.Bytes(), b.Bytes()) })
	for _, forced := range b.plans {
		plan, err := planner.Decide(largest, t, &planner.Options{Plan: forced, Table: b.Table})
		if err != nil {
			return nil, kit.UsageError(err)
		}
		c := &sim.Compilation{Request: largest, Topology: t, Plan: plan, Registry: b.Registry, Check: ctx.Err}
		n, err := kit.CheckSimulation(c, 1)
		if err != nil {
			return nil, err
		}
		need = kit.NeedText(kit.SimulationText(c, n)+", at most", n.Bytes)
	}
	return kit.NewProgress(stderr, "simulating", need), nil
}

// simulate returns the row of a request with a forced plan, from one root or from all.
func (b *Coll) simulate(ctx context.Context, meter tune.Meter, r tasks.Request, forced string) (row Result, err error) {
	t := b.Job.Topology()
	var first tasks.Plan // of the first root
	var all, p50, lows, p99 []float64
	for i, root := range b.rootsOf(r) {
		r.Root = root
		plan, err := planner.Decide(r, t, &planner.Options{Plan: forced, Table: b.Table})
		if err != nil {
			return row, kit.UsageError(err)
		}
		if i == 0 {
			first = plan
		}
		timing, err := meter.Collective(ctx, r, plan, stats.Stop{})
		if err != nil {
			return row, kit.UsageError(err)
		}
		times := slices.Sorted(slices.Values(timing.Series))
		for i := range times {
			times[i] /= 1e3 // µs
		}
		one := sumUp(t, r, plan, times)
		all, p50, lows, p99 = append(all, times...), append(p50, one.P50), append(lows, one.Min), append(p99, one.P99)
	}
	slices.Sort(all)
	row = sumUp(t, r, first, all)
	row.Asked = forced
	if len(p50) > 1 {
		row.Roots = newSpread(b.every, p50, lows, p99)
	}
	return row, nil
}

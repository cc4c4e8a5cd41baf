package planner_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Costs are measured over the links of processes too: shared memory and TCP.
func TestBenchOnProcesses(t *testing.T) {
	comms := joinProcesses(t, 4, 2, nil)
	defer closeAll(t, comms)
	r := tasks.Request{Coll: tasks.Allreduce, Type: tasks.Float64, Op: tasks.Sum, Count: 1 << 16}
	lockstep := tasktest.Plan(t, "shape=han-lockstep,fs=16KiB,w=4,i=adapt/binomial,s=solo")
	flow := lockstep
	flow.Shape = tasks.Han
	stop := stats.Stop{Least: 2, Most: 2}
	for rank, err := range each(comms, func(ctx context.Context, c *planner.Comm) error {
		b, err := tune.NewBench(ctx, c)
		if err != nil {
			return err
		}
		book := &costs.Book{}
		if _, err := b.Stages(ctx, r, lockstep, stop, book); err != nil {
			return err
		}
		key, err := costs.PipelineKey(r, c.Topology(), flow)
		if err != nil {
			return err
		}
		pipe, err := b.Pipeline(ctx, r, flow, stop)
		if err != nil {
			return err
		}
		book.AddPipeline(key, pipe)
		kinds := [2]tasks.Kind{{Symbol: 'i', Op: tasks.Bcast}, {Symbol: levels.NodeSymbol, Op: tasks.Bcast}}
		if _, err := b.Overlap(ctx, r, lockstep, kinds, stop); err != nil {
			return err
		}
		for _, p := range []tasks.Plan{lockstep, flow} {
			timing, err := b.Collective(ctx, r, p, stop)
			if err != nil {
				return err
			}
			x, err := costs.Predict(r, c.Topology(), p, book)
			if err != nil || x.NS <= 0 || timing.Slowest.N != 2 || timing.Slowest.Min <= 0 {
				return fmt.Errorf("plan %v: predicted %v, %w, measured %+v", p, x.NS, err, timing)
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

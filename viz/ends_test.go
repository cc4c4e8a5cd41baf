package viz_test

import (
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// A root of a bcast between nodes sends at once and an allreduce's leader only after its
// node's first segment. Small segments shorten what stands before and after.
func TestEnds(t *testing.T) {
	measure := func(coll tasks.Collective, topo, plan string) viz.Ends {
		on, progs := compiled(t, coll, 256<<10, topo, plan)
		job, err := sim.New(on, progs)
		if err != nil {
			t.Fatal(err)
		}
		var d viz.Ends
		result, err := job.Run(machine.Assumed(), sim.Options{Watch: func(e sim.Event) {
			d.Add(trace.Event{
				Source: job.Source(e.Rank, e.Pass), Rank: e.Rank, Step: e.Step, Begin: int64(e.Begin.Duration()), End: int64(e.End.Duration()),
			}, on)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if d.Over != result.Time.Duration() || d.Arrives > d.Over || d.Leaves >= d.Arrives && d.Messages > 0 {
			t.Errorf("%v %s %s: %+v of %v", coll, topo, plan, d, result.Time)
		}
		return d
	}
	const small, large = "shape=han,fs=16KiB,w=2,i=adapt/chain,s=sm", "shape=han,fs=128KiB,w=2,i=adapt/chain,s=sm"
	if d := measure(tasks.Bcast, "4x2", small); d.Leaves != 0 || d.Messages != 3*16 {
		t.Errorf("bcast: %+v, want 48 messages from the start on", d)
	}
	a, b := measure(tasks.Allreduce, "4x2", small), measure(tasks.Allreduce, "4x2", large)
	if a.Leaves <= 0 || a.Leaves >= b.Leaves || a.Over-a.Arrives >= b.Over-b.Arrives {
		t.Errorf("allreduce: small segments %+v, large ones %+v", a, b)
	}
	if d := measure(tasks.Bcast, "1x4", "shape=flat,fs=16KiB,w=2,i=adapt/chain,s=sm"); d.Messages != 0 || d.String() != "" {
		t.Errorf("on one node: %+v, %q", d, d.String())
	}
}

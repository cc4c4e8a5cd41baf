package priced

import (
	"math"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

func ask(t *testing.T, coll tasks.Collective, topo string, bytes int64) *rule.Asked {
	t.Helper()
	on, err := levels.Parse(topo)
	if err != nil {
		t.Fatal(err)
	}
	r := tasks.Request{Coll: coll, Type: tasks.Float32, Count: bytes / 4}
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	return rule.Ask(r, on)
}

// What is simulated in part, or on one node for all, takes as long as the whole.
func TestPartsTakeAsLong(t *testing.T) {
	m := machine.Assumed()
	for _, tc := range []struct {
		coll  tasks.Collective
		topo  string
		bytes int64
		plan  string
	}{
		{tasks.Bcast, "6x2", 8 << 20, "shape=han,fs=60KiB,w=8,i=adapt/chain,s=sm"},
		{tasks.Bcast, "9x1", 4 << 20, "shape=han,fs=all,w=4,i=circulant/blocks/30KiB"},
		{tasks.Reduce, "8x1", 8 << 20, "shape=han,fs=120KiB,w=8,i=adapt/binary"},
		{tasks.Allreduce, "8x2", 16 << 20, "shape=rsag,fs=480KiB,w=3,i=adapt/ring,s=sm"},
		{tasks.Allgather, "8x2", 64 << 10, "shape=flat,fs=all,w=1,i=adapt/ring"},
		{tasks.Allreduce, "16x1", 16 << 10, "shape=ar,fs=all,w=1,i=nbc/recdoubling"},
	} {
		plan, err := tasks.ParsePlan(tc.plan)
		if err != nil {
			t.Fatal(err)
		}
		asked := ask(t, tc.coll, tc.topo, tc.bytes)
		s := &rehearsal{machine: m, asked: asked, reg: all.Submodules(), left: 1e8, most: 1e8}
		got, ok := s.time(plan, 0)
		job, err := sim.Compile(asked.Request, asked.On, plan, s.reg)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := job.Run(m, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := whole.Time.Nanoseconds(); !ok || math.Abs(got/want-1) > 0.03 {
			t.Errorf("%v %s: %.1f µs, %v; want %.1f", asked.Request, tc.plan, got/1e3, ok, want/1e3)
		}
		if used := 1e8 - s.left; used > 8*job.Steps() {
			t.Errorf("%v %s: it took the work of %d steps, and has %d", asked.Request, tc.plan, used, job.Steps())
		}
	}
}

// The budget bounds what is simulated. Among very many ranks that is nothing, and prices decide.
func TestBudget(t *testing.T) {
	m := machine.Assumed()
	for topo, simulates := range map[string]bool{"16x2": true, "1100x1": false} {
		asked := ask(t, tasks.Bcast, topo, 1<<10)
		ruled, _ := asked.Choose(tasks.Plan{})
		c, err := Choose(m, asked, ruled, all.Submodules(), Exact)
		if err != nil || c.Tried > 0 != simulates || len(c.Plans) == 0 || c.Plans[0].Time() <= 0 {
			t.Errorf("%s: %+v, %v", topo, c, err)
		}
	}
	s := newRehearsal(m, ask(t, tasks.Alltoall, "16x2", 1<<20), all.Submodules(), Exact)
	s.most = 100
	plan, err := tasks.ParsePlan("shape=flat,fs=all,w=1,i=adapt/linear")
	if err != nil {
		t.Fatal(err)
	}
	if ns, ok := s.time(plan, 0); ok {
		t.Errorf("a plan of too many steps takes %v", ns)
	}
}

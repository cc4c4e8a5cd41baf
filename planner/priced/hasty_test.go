package priced_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// hastyMachine draws a machine as ranks may measure it: nodes of their own, or all on two
// processors, which then decide more than the wire does.
func hastyMachine(rng *rand.Rand) *machine.Machine {
	m := machine.Assumed()
	for k := range m.Links {
		if l := &m.Links[k]; l.Level == 'i' {
			l.Byte = 0.08 * math.Pow(1000, rng.Float64())
			l.Latency, l.Send, l.Recv = 30e3*rng.Float64(), 500+6e3*rng.Float64(), 500+8e3*rng.Float64()
		}
	}
	if rng.IntN(2) == 0 {
		m.Cores.InAll = 2
	}
	return m
}

// On hasty numbers another plan than the rule's is taken only if it saves more than the margin in a
// simulation of all ranks: on machines, layouts and sizes that are drawn.
func TestHastyChoicesSave(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	changed := 0
	for range 60 {
		m := hastyMachine(rng)
		topo := tasktest.Topology(t, []string{"4x2", "4x1", "7x1", "3x3", "2x4"}[rng.IntN(5)])
		coll := []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.ReduceScatter, tasks.Alltoall, tasks.Scatter, tasks.Gather}[rng.IntN(8)]
		r := tasktest.Request(coll, int64(256*math.Pow(4096, rng.Float64())))
		ruled, _ := builtin.Choose(r, topo, tasks.Plan{})
		c, err := priced.Choose(m, builtin.Ask(r, topo), ruled, all.Submodules(), priced.Hasty)
		if err != nil {
			t.Fatal(err)
		}
		if c.Ruled {
			for _, o := range c.Plans[min(1, len(c.Plans)):] {
				if o.Time() < c.Rule.Time() {
					t.Errorf("%v on %v: %+v saves less than the margin, and is listed with the rule's %+v", r, topo, o, c.Rule)
				}
			}
			continue
		}
		changed++
		own, ns := simulated(t, m, r, topo, ruled), simulated(t, m, r, topo, c.Plans[0].Plan)
		if ns*1.1 > own { // some of the margin is for rows that are simulated in part
			t.Errorf("%v on %v: %v takes %.0f ns, the rule's %v takes %.0f", r, topo, c.Plans[0].Plan, ns, ruled, own)
		}
	}
	if changed < 10 {
		t.Errorf("%d choices are not the rule's, want ten at least", changed)
	}
}

// On hasty numbers messages are no longer than those measured, for they may come from a cache. Only blocks that
// go straight to their places may be: they aren't cut into pieces for nothing.
func TestHastyMessagesAreShort(t *testing.T) {
	m := machine.Assumed() // but without a rate, on two processors
	m.Cores.InAll = 2
	for k := range m.Links {
		if l := &m.Links[k]; l.Level == 'i' {
			l.Byte, l.Latency, l.Send, l.Recv = 0.12, 0, 5e3, 7e3
		}
	}
	whole := 0
	for _, spec := range []string{"4x1", "4x2", "3x2", "3x1", "5x1", "6x1"} {
		topo := tasktest.Topology(t, spec)
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allgather, tasks.Scatter, tasks.Gather, tasks.Alltoall} {
			r := tasktest.Request(coll, 1<<20)
			ruled, _ := builtin.Choose(r, topo, tasks.Plan{})
			c, err := priced.Choose(m, builtin.Ask(r, topo), ruled, all.Submodules(), priced.Hasty)
			if err != nil {
				t.Fatal(err)
			}
			if c.Ruled {
				continue
			}
			p := c.Plans[0].Plan
			between, _ := p.Choice("i")
			if p.Segment <= 256<<10 || between.Inner > 0 {
				continue
			}
			whole++
			straight := coll == tasks.Scatter || coll == tasks.Gather || coll == tasks.Alltoall
			if !straight || topo.Size() > topo.Nodes() && !p.Shape.IsFlat() || between.Algorithm != submodules.Linear && between.Algorithm != submodules.Pairwise {
				t.Errorf("%v on %v: %v has longer messages than were measured", r, topo, p)
			}
		}
	}
	if whole < 3 {
		t.Errorf("%d choices send whole blocks, want three at least", whole)
	}
}

// The rule's plan stays where no plan takes any time: without elements, and for ranks with nothing to do.
func TestNothingToDo(t *testing.T) {
	m := hastyMachine(rand.New(rand.NewPCG(1, 1)))
	m.CopyByte, m.Step = 0, 0
	for _, spec := range []string{"1x1", "4x1", "2x2", "2x2x2"} {
		topo := tasktest.Topology(t, spec)
		for _, coll := range tasks.Requestable() {
			for _, bytes := range []int64{0, 64} {
				for _, margin := range []float64{priced.Hasty, priced.Exact} {
					r := tasktest.Request(coll, bytes)
					ruled, _ := builtin.Choose(r, topo, tasks.Plan{})
					c, err := priced.Choose(m, builtin.Ask(r, topo), ruled, all.Submodules(), margin)
					if err != nil || bytes == 0 && r.Coll.HasData() && !c.Ruled {
						t.Errorf("%v on %v: %+v, %v; want the rule's plan", r, topo, c, err)
					}
				}
			}
		}
	}
}

// simulated returns what a plan takes with all ranks, ns.
func simulated(t *testing.T, m *machine.Machine, r tasks.Request, on *levels.Topology, p tasks.Plan) float64 {
	t.Helper()
	job, err := (&sim.Compilation{Request: r, Topology: on, Plan: p, Registry: all.Submodules()}).Job()
	if err != nil {
		t.Fatal(err)
	}
	result, err := job.Run(m, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return result.Time.Nanoseconds()
}

package priced_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// The best offer comes first, and says by how much it is cheaper.
func TestOffers(t *testing.T) {
	topo := tasktest.Topology(t, "16x1")
	r := tasktest.Request(tasks.Allreduce, 16<<10)
	ruled := tasktest.Plan(t, "shape=rsag,fs=all,w=3,i=adapt/ring")
	c, err := priced.Choose(machinetest.Speeds[0].Machine(), builtin.Ask(r, topo), ruled, all.Submodules(), priced.Exact)
	if err != nil {
		t.Fatal(err)
	}
	if c.Ruled || len(c.Plans) < 2 || c.Saved <= 0 || c.Tried < 2 || c.Plans[0].Simulated == 0 {
		t.Fatalf("a ring of 30 steps for 16 KiB: %+v", c)
	}
	asked, best := builtin.Ask(r, topo), c.Plans[0].Plan
	var twice [2]priced.Choice // its own rival changes nothing
	for i, rivals := range [][]tasks.Plan{{ruled}, {ruled, best}} {
		if twice[i], err = priced.ChooseAmong(machinetest.Speeds[0].Machine(), asked, best, rivals, all.Submodules(), priced.Exact); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(twice[0], twice[1]) {
		t.Errorf("the rule's plan is its own rival: %+v, want %+v", twice[1], twice[0])
	}
	for i, o := range c.Plans {
		if i > 0 && o.Time() < c.Plans[i-1].Time() {
			t.Errorf("offer %d takes %v, the one before %v", i, o.Time(), c.Plans[i-1].Time())
		}
	}
}

// On exact numbers, too, the rule's plan is simulated: another one is chosen only if it takes less than that. Here ranks share two
// processors, where prices are worst.
func TestRuleIsSimulated(t *testing.T) {
	m := machine.Assumed()
	m.Links[len(m.Links)-1].BurstBytes, m.Cores.InAll, m.Cores.Switch = 20<<10, 2, 9000
	for _, spec := range []string{"4x1", "8x1", "13x1"} {
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce} {
			for _, bytes := range []int64{4 << 10, 16 << 10, 64 << 10, 256 << 10} {
				topo, r := tasktest.Topology(t, spec), tasktest.Request(coll, bytes)
				ruled, _ := builtin.Choose(r, topo, tasks.Plan{})
				c, err := priced.Choose(m, builtin.Ask(r, topo), ruled, all.Submodules(), priced.Exact)
				if err != nil {
					t.Fatal(err)
				}
				if c.Rule.Simulated == 0 || c.Plans[0].Time() > c.Rule.Simulated {
					t.Errorf("%v on %s: %v takes %.0f ns, the rule's %v %.0f", r, spec, c.Plans[0].Plan, c.Plans[0].Time(), ruled, c.Rule.Simulated)
				}
			}
		}
	}
}

// Plans without a price, and requests without rivals, leave it to the rule.
func TestRuleStays(t *testing.T) {
	for _, tc := range []struct {
		spec string
		r    tasks.Request
	}{
		{"1x8", tasktest.Request(tasks.Allreduce, 1<<20)},
		{"8x1", tasktest.Request(tasks.Scan, 1<<20)},
	} {
		topo := tasktest.Topology(t, tc.spec)
		ruled, _ := builtin.Choose(tc.r, topo, tasks.Plan{})
		c, err := priced.Choose(machine.Assumed(), builtin.Ask(tc.r, topo), ruled, all.Submodules(), priced.Exact)
		if err != nil || !c.Ruled || !c.Rule.Plan.Equal(ruled) {
			t.Errorf("%v on %s: %+v, %v", tc.r, tc.spec, c, err)
		}
	}
}

// On hasty numbers no message between nodes is longer than what was measured, whatever has no price
// in caches: but for the rule's own plan. On exact numbers longer ones win.
func TestMessagesAreAsMeasured(t *testing.T) {
	const most = 256 << 10
	changed, long := 0, 0
	for _, spec := range []string{"4x1", "6x2", "16x1"} {
		topo := tasktest.Topology(t, spec)
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.ReduceScatter} {
			r := tasktest.Request(coll, 16<<20)
			ruled, _ := builtin.Choose(r, topo, tasks.Plan{})
			for _, margin := range []float64{priced.Exact, priced.Hasty} {
				c, err := priced.Choose(machinetest.Speeds[2].Machine(), builtin.Ask(r, topo), ruled, all.Submodules(), margin)
				if err != nil {
					t.Fatal(err)
				}
				if c.Ruled {
					continue
				}
				program, err := submodules.CompileRequest(r, topo, c.Plans[0].Plan, 1, all.Submodules())
				if err != nil {
					t.Fatal(err)
				}
				longest := int64(0)
				for _, s := range program.Rest.Steps() {
					if s.Kind == submodules.SendStep && topo.Meet(1, program.Rest.Peers[s.Peer].Rank) == topo.Depth()-1 {
						longest = max(longest, s.Len())
					}
				}
				switch {
				case margin == priced.Exact && longest > most:
					long++
				case margin == priced.Hasty && longest > most:
					t.Errorf("%v on %s: %v sends %d bytes at once, measured were %d", coll, spec, c.Plans[0].Plan, longest, most)
				case margin == priced.Hasty:
					changed++
				}
			}
		}
	}
	if changed == 0 || long == 0 {
		t.Errorf("%d choices on hasty numbers, %d of longer messages on exact ones", changed, long)
	}
}

// A choice among all candidates, which a communicator makes once for equal requests.
func BenchmarkChoose(b *testing.B) {
	for _, spec := range []string{"4x2", "8x8", "64x1", "64x16", "256x16", "4096x1"} {
		topo := tasktest.Topology(b, spec)
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Allreduce, tasks.Allgather} {
			for name, bytes := range map[string]int64{"4KiB": 4 << 10, "1MiB": 1 << 20} {
				for numbers, margin := range map[string]float64{"exact": priced.Exact, "hasty": priced.Hasty} {
					b.Run(fmt.Sprintf("coll=%v/on=%s/bytes=%s/numbers=%s", coll, spec, name, numbers), func(b *testing.B) {
						r, m := tasktest.Request(coll, bytes), machine.Assumed()
						ruled, _ := builtin.Choose(r, topo, tasks.Plan{})
						for b.Loop() {
							if _, err := priced.Choose(m, builtin.Ask(r, topo), ruled, all.Submodules(), margin); err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			}
		}
	}
}

// Ranks that choose for themselves choose the same.
func TestSameEverywhere(t *testing.T) {
	for _, spec := range []string{"6x2", "5x1", "2x3"} {
		topo := tasktest.Topology(t, spec)
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Allreduce, tasks.Allgather, tasks.Alltoall} {
			r := tasktest.Request(coll, 200_000)
			ruled, _ := builtin.Choose(r, topo, tasks.Plan{})
			a, err := priced.Choose(machinetest.Speeds[1].Machine(), builtin.Ask(r, topo), ruled, all.Submodules(), priced.Hasty)
			b, err2 := priced.Choose(machinetest.Speeds[1].Machine(), builtin.Ask(r, topo), ruled, all.Submodules(), priced.Hasty)
			if err != nil || err2 != nil || !reflect.DeepEqual(a, b) {
				t.Errorf("%v on %s: %+v, then %+v, %v, %v", coll, spec, a, b, err, err2)
			}
		}
	}
}

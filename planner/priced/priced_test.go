package priced_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// What is chosen in place of the rule's plan is never a plan that a search with heuristics
// would leave out.
func TestNeverPruned(t *testing.T) {
	space := tune.Space{Registry: all.Submodules(), Heuristics: true}
	taken := 0
	for _, spec := range []string{"2x1", "3x1", "4x1", "7x1", "16x1", "33x1", "128x1", "512x1", "4x2", "3x2/rr", "9x4", "32x16"} {
		topo, err := levels.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, coll := range tasks.Requestable() {
			for _, bytes := range []int64{8, 1 << 10, 8 << 10, 20 << 10, 100_000, 1 << 20, 16 << 20} {
				r := request(coll, bytes)
				ruled, _ := rule.Choose(r, topo, tasks.Plan{})
				for speed := range speeds {
					c, err := priced.Choose(at(speed), r, topo, ruled, space.Registry, priced.Exact)
					if err != nil {
						t.Fatal(err)
					}
					if c.Ruled {
						continue
					}
					taken++
					p := c.Offers[0].Plan
					if why := pruned(space, r, topo, p); why != "" {
						t.Errorf("%v on %s at %s: %v: %s", r, spec, speeds[speed].name, p, why)
					}
				}
			}
		}
	}
	if taken == 0 {
		t.Error("the rule's plan was chosen everywhere")
	}
}

// pruned says why a search would leave out a plan that it is given as its only one.
func pruned(s tune.Space, r tasks.Request, t *levels.Topology, p tasks.Plan) string {
	s.Shapes, s.Segments, s.Windows, s.Inners = []tasks.Shape{p.Shape}, []int64{p.Segment}, []int{p.Window}, []int64{0}
	s.Plan = p
	for _, c := range s.Configurations(r, t) {
		if c.Rejected != "" && !strings.HasPrefix(c.Rejected, "not supported") && c.Plan.Shape == p.Shape {
			return c.Rejected
		}
	}
	return ""
}

// The best offer comes first, and says by how much it is cheaper.
func TestOffers(t *testing.T) {
	topo, err := levels.Parse("16x1")
	if err != nil {
		t.Fatal(err)
	}
	r := request(tasks.Allreduce, 16<<10)
	ruled, err := tasks.ParsePlan("shape=rsag,fs=all,w=3,i=adapt/ring")
	if err != nil {
		t.Fatal(err)
	}
	c, err := priced.Choose(at(0), r, topo, ruled, all.Submodules(), priced.Exact)
	if err != nil {
		t.Fatal(err)
	}
	if c.Ruled || len(c.Offers) < 2 || c.Saved <= 0 {
		t.Fatalf("a ring of 30 steps for 16 KiB: %+v", c)
	}
	for i, o := range c.Offers {
		if i > 0 && o.Price.NS < c.Offers[i-1].Price.NS {
			t.Errorf("offer %d costs %v, the one before %v", i, o.Price.NS, c.Offers[i-1].Price.NS)
		}
	}
}

// Plans without a price, and requests without rivals, leave it to the rule.
func TestRuleStays(t *testing.T) {
	for _, tc := range []struct {
		spec string
		r    tasks.Request
	}{
		{"1x8", request(tasks.Allreduce, 1<<20)},
		{"8x1", request(tasks.Scan, 1<<20)},
	} {
		topo, err := levels.Parse(tc.spec)
		if err != nil {
			t.Fatal(err)
		}
		ruled, _ := rule.Choose(tc.r, topo, tasks.Plan{})
		c, err := priced.Choose(machine.Assumed(), tc.r, topo, ruled, all.Submodules(), priced.Exact)
		if err != nil || !c.Ruled || !c.Rule.Plan.Equal(ruled) {
			t.Errorf("%v on %s: %+v, %v", tc.r, tc.spec, c, err)
		}
	}
}

// A choice among all candidates, which a communicator makes once for equal requests.
func BenchmarkChoose(b *testing.B) {
	for _, spec := range []string{"16x1", "64x4", "256x16", "4096x1"} {
		topo, err := levels.Parse(spec)
		if err != nil {
			b.Fatal(err)
		}
		for _, coll := range []tasks.Collective{tasks.Bcast, tasks.Allreduce, tasks.Allgather} {
			b.Run(fmt.Sprintf("coll=%v/on=%s", coll, spec), func(b *testing.B) {
				r, m := request(coll, 1<<20), machine.Assumed()
				ruled, _ := rule.Choose(r, topo, tasks.Plan{})
				for b.Loop() {
					if _, err := priced.Choose(m, r, topo, ruled, all.Submodules(), priced.Exact); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

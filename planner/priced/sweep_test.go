package priced_test

import (
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// sweepVariable asks TestNearTheBest for the whole sweep, which takes some minutes.
const sweepVariable = "TIERFLOW_PRICE_SWEEP"

// speeds are links between nodes: what a byte takes, how far the other end is, and what a
// message costs the processor, ns.
var speeds = []struct {
	name                   string
	byteNs, latency, perOp float64
}{
	{"100 Mbit/s", 80, 50e3, 4e3},
	{"10 Gbit/s", 0.8, 15e3, 2e3},
	{"100 Gbit/s", 0.08, 2e3, 500},
}

// at returns the machine of a speed.
func at(speed int) *machine.Machine {
	m, s := machine.Assumed(), speeds[speed]
	for k := range m.Links {
		if l := &m.Links[k]; l.Level == 'i' {
			l.Byte, l.Latency, l.Send, l.Recv = s.byteNs, s.latency, s.perOp, s.perOp
		}
	}
	return m
}

// mostSteps bounds the simulation of a rival: those with more are no competitors here.
const mostSteps = 40_000

func request(coll tasks.Collective, bytes int64) tasks.Request {
	if coll == tasks.Barrier {
		return tasks.Request{Coll: coll}
	}
	r := tasks.Request{Coll: coll, Type: tasks.Float32, Count: bytes / 4}
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	return r
}

// The plan that is chosen by price, beside the best of all candidates and beside the
// rule's, in simulated time. Neither the nodes nor the sizes of the sample are those that
// the closed forms were made with. The bounds are what was found, and a little more.
func TestNearTheBest(t *testing.T) {
	specs, sizes := []string{"3x1", "12x1", "24x1", "8x2"}, []int64{64, 12 << 10, 96 << 10, 512 << 10}
	if os.Getenv(sweepVariable) != "" {
		specs = []string{"2x1", "3x1", "4x1", "5x1", "6x1", "8x1", "12x1", "16x1", "24x1", "32x1", "48x1", "64x1", "128x1", "4x4", "8x2", "16x4", "24x4", "16x16"}
		sizes = []int64{8, 64, 512, 2 << 10, 4 << 10, 8 << 10, 12 << 10, 20 << 10, 32 << 10, 64 << 10, 96 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20}
	}
	for _, tc := range []struct {
		coll              tasks.Collective
		worst, mean, lost float64 // bounds: ratio to the best, its geometric mean, ratio to the rule's plan
	}{
		{tasks.Bcast, 1.3, 1.04, 1.1},
		{tasks.Reduce, 1.3, 1.04, 1.2},
		{tasks.Allreduce, 1.35, 1.05, 1.3},
	} {
		for speed := range speeds {
			var of tally
			for _, spec := range specs {
				for _, bytes := range sizes {
					of.add(t, tc.coll, spec, bytes, speed)
				}
			}
			mean, ruled := math.Exp(of.sum/of.cells), math.Exp(of.ruled/of.cells)
			t.Logf("%v at %s: %.3f times the best on average, at most %.2f (%s); rule %.3f; against the rule at most %.2f",
				tc.coll, speeds[speed].name, mean, of.worst, of.where, ruled, of.lost)
			if mean > tc.mean || of.worst > tc.worst || of.lost > tc.lost {
				t.Errorf("%v at %s: want at most %v on average, %v at worst, %v times the rule's", tc.coll, speeds[speed].name, tc.mean, tc.worst, tc.lost)
			}
		}
	}
}

// tally sums up ratios of simulated times.
type tally struct {
	sum, ruled, cells float64 // of logarithms
	worst, lost       float64
	where             string // the worst is
}

func (y *tally) add(t *testing.T, coll tasks.Collective, spec string, bytes int64, speed int) {
	t.Helper()
	topo, err := levels.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	r, m := request(coll, bytes), at(speed)
	ruled, _ := rule.Choose(r, topo, tasks.Plan{})
	c, err := priced.Choose(m, r, topo, ruled, all.Submodules(), priced.Exact)
	if err != nil {
		t.Fatal(err)
	}
	own := took(t, r, topo, m, ruled, math.MaxInt64)
	chosen := own
	if !c.Ruled {
		chosen = took(t, r, topo, m, c.Offers[0].Plan, math.MaxInt64)
	}
	best := min(own, chosen)
	for _, p := range priced.Candidates(r, topo, ruled) {
		if ns := took(t, r, topo, m, p, mostSteps); ns > 0 {
			best = min(best, ns)
		}
	}
	ratio := chosen / best
	if ratio > y.worst {
		y.worst, y.where = ratio, fmt.Sprintf("%v on %s", r, spec)
	}
	y.sum, y.ruled, y.cells = y.sum+math.Log(ratio), y.ruled+math.Log(own/best), y.cells+1
	y.lost = max(y.lost, chosen/own)
}

// took returns the simulated time of a plan, ns; 0 if it has too many steps.
func took(t *testing.T, r tasks.Request, on *levels.Topology, m *machine.Machine, p tasks.Plan, most int64) float64 {
	t.Helper()
	job, err := sim.Compile(r, on, p, all.Submodules())
	if err != nil {
		t.Fatalf("%v on %v by %v: %v", r, on, p, err)
	}
	if job.Steps() > most {
		return 0
	}
	result, err := job.Run(m, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return result.Time.Nanoseconds()
}

package builtin_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// TestRuleAtThreeSpeeds holds how near the rule's plan is to the best of some dozen, where
// its rows for many nodes decide. The bounds are what was found, and a little more: whoever
// makes a row better may lower them.
func TestRuleAtThreeSpeeds(t *testing.T) {
	for _, tc := range []struct {
		coll        tasks.Collective
		most, usual float64 // the worst ratio, and the geometric mean
	}{
		{tasks.Bcast, 1.95, 1.14},
		{tasks.Reduce, 1.6, 1.12},
		{tasks.Allreduce, 1.75, 1.12},
	} {
		sum, worst, cells := 0.0, 1.0, 0
		for _, spec := range []string{"6x1", "16x1", "24x4", "64x1"} {
			for _, bytes := range []int64{8 << 10, 20 << 10, 64 << 10, 256 << 10, 1 << 20} {
				r := tasktest.Request(tc.coll, bytes)
				for i, ratio := range ratios(t, r, spec) {
					sum, worst, cells = sum+math.Log(ratio), max(worst, ratio), cells+1
					if ratio > tc.most {
						t.Errorf("%v on %s at %s: the rule's plan takes %.2f times the best, want at most %v", r, spec, machinetest.Speeds[i].Name, ratio, tc.most)
					}
				}
			}
		}
		mean := math.Exp(sum / float64(cells))
		t.Logf("%v: %.2f times the best on average, at most %.2f", tc.coll, mean, worst)
		if mean > tc.usual {
			t.Errorf("%v: the rule's plans take %.2f times the best on average, want at most %v", tc.coll, mean, tc.usual)
		}
	}
}

// ratios are how many times as long the rule's plan takes as the best, by speed.
func ratios(t *testing.T, r tasks.Request, spec string) []float64 {
	t.Helper()
	topo := tasktest.Topology(t, spec)
	ruled, _ := builtin.Choose(r, topo, tasks.Plan{})
	took := atAllSpeeds(t, r, topo, ruled)
	best := append([]sim.Time(nil), took...)
	for _, text := range rivals(r) {
		p := tasktest.Plan(t, text)
		rest, _ := builtin.Choose(r, topo, tasks.Plan{Shape: p.Shape})
		for i, other := range atAllSpeeds(t, r, topo, p.Over(rest)) {
			best[i] = min(best[i], other)
		}
	}
	all := make([]float64, len(took))
	for i := range took {
		all[i] = float64(took[i]) / float64(best[i])
	}
	return all
}

// rivals are the plans that the rule could have chosen between nodes. Exchanges of all with
// all aren't among them: a simulated switch has room for any number of messages to one node.
func rivals(r tasks.Request) (all []string) {
	inners := []string{"", "/2KiB", "/5KiB", "/8KiB", "/15KiB", "/30KiB"}
	switch r.Coll {
	case tasks.Allreduce:
		for _, a := range []string{"nbc/recdoubling", "nbc/rabenseifner", "circulant/blocks", "adapt/ring"} {
			all = append(all, "shape=ar,fs=all,w=1,iar="+a, "shape=ar,fs=60KiB,w=8,iar="+a)
		}
		all = append(all, "shape=rsag,fs=all,w=1,irs=adapt/ring,iag=adapt/ring")
		for _, inner := range inners {
			all = append(all, fmt.Sprintf("shape=han,fs=all,w=1,ir=circulant/blocks%s,ib=circulant/blocks%s", inner, inner))
		}
	default:
		kind := tasks.Kind{Symbol: 'i', Op: r.Coll}
		for _, a := range []string{"adapt/binomial", "adapt/binary", "adapt/chain"} {
			all = append(all, fmt.Sprintf("shape=han,fs=all,w=1,%v=%s", kind, a), fmt.Sprintf("shape=han,fs=15KiB,w=8,%v=%s", kind, a))
		}
		for _, inner := range inners {
			all = append(all, fmt.Sprintf("shape=han,fs=all,w=1,%v=circulant/blocks%s", kind, inner))
		}
	}
	return all
}

func atAllSpeeds(t *testing.T, r tasks.Request, topo *levels.Topology, plan tasks.Plan) []sim.Time {
	t.Helper()
	job, err := sim.Compile(r, topo, plan, submodules.Registry(all.Submodules()))
	if err != nil {
		t.Fatal(err)
	}
	took := make([]sim.Time, len(machinetest.Speeds))
	for i, s := range machinetest.Speeds {
		result, err := job.Run(s.Machine(), sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		took[i] = result.Time
	}
	return took
}

package tune_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/derived"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// modelSearch tunes bcasts of some sizes by models on simulated nodes.
func modelSearch(t *testing.T, topo string, requests ...tasks.Request) (*table.Table, error) {
	t.Helper()
	on := tasktest.Topology(t, topo)
	made := &table.Table{Version: table.Version, Provenance: table.Provenance{Simulated: "assumed"}}
	s := tune.Search{Topology: on, Requests: requests, Space: tune.Space{Registry: all.Submodules()}, Method: tune.Models, Table: made}
	return s.Run(t.Context(), tune.NewSimulatedMeter(on, machine.Assumed(), all.Submodules()))
}

func bcast(bytes int64) tasks.Request {
	return tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: bytes}
}

// The models' choices take hardly longer than the best of the six algorithms, on the machine
// where they were estimated and on one of twice as many nodes, which none has seen.
func TestModelsChooseWell(t *testing.T) {
	requests := []tasks.Request{bcast(64), bcast(8 << 10), bcast(64 << 10), bcast(1 << 20)}
	made, err := modelSearch(t, "12x1", requests...)
	if err != nil {
		t.Fatal(err)
	}
	for topo, limit := range map[string]float64{"12x1": 1.1, "24x1": 1.2} {
		on, _ := levels.Parse(topo)
		meter := tune.NewSimulatedMeter(on, machine.Assumed(), all.Submodules())
		for _, r := range requests {
			best := 0.0
			for _, algorithm := range []string{"linear", "chain/8KiB", "kchain/8KiB", "binary/8KiB", "splitbinary/8KiB", "binomial/8KiB"} {
				p, _ := tasks.ParsePlan("shape=flat,fs=all,w=1,ib=adapt/" + algorithm)
				timing, err := meter.Collective(t.Context(), r, p, stats.Stop{})
				if err != nil {
					t.Fatal(err)
				}
				if ns := timing.Slowest.P50; best == 0 || ns < best {
					best = ns
				}
			}
			answer := made.Find(r, on, "", all.Submodules())
			if len(answer.Estimates) == 0 {
				t.Errorf("%s, %v: %s", topo, r, answer.Why)
				continue
			}
			choice := answer.Estimates[0]
			timing, err := meter.Collective(t.Context(), r, choice.Plan, stats.Stop{})
			if err != nil {
				t.Fatal(err)
			}
			if ns := timing.Slowest.P50; ns > limit*best {
				t.Errorf("%s, %v: %v takes %.0f ns, the best of six %.0f", topo, r, choice.Plan, ns, best)
			}
		}
	}
	for _, m := range made.Measured {
		t.Errorf("%v was measured by itself", m)
	}
}

// What a model says is what the same program takes when it is simulated: of each algorithm, on drawn machines, for drawn
// numbers of nodes, sizes and segments, on both sides of the length from which a rank's messages leave one
// after the other.
func TestModelsAreSimulatedTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 5))
	for i := range 6 {
		on := tasktest.Topology(t, fmt.Sprintf("%dx1", 8+rng.IntN(40)))
		m := machine.Assumed()
		l := &m.Links[1]
		l.Latency, l.Byte = 5e3+20e3*rng.Float64(), 0.1+2*rng.Float64()
		l.Send, l.Recv = 1e3+4e3*rng.Float64(), 1e3+4e3*rng.Float64()
		meter := tune.NewSimulatedMeter(on, m, all.Submodules())
		o := tune.Estimation{Topology: on, Registry: all.Submodules(), Segment: 8 << 10, Most: 1 << 20}
		if i%2 == 1 {
			o.Segment, o.Most = submodules.ShortSend+rng.Int64N(64<<10), 4<<20
		}
		p, _, err := o.Estimate(t.Context(), meter)
		if err != nil {
			t.Fatal(err)
		}
		for _, model := range derived.Models() {
			for _, bytes := range []int64{o.Segment + rng.Int64N(7*o.Segment), o.Most/8 + rng.Int64N(o.Most*7/8)} {
				plan := model.Plan(on, o.Segment)
				timing, err := meter.Collective(t.Context(), bcast(bytes), plan, stats.Stop{})
				if err != nil {
					t.Fatal(err)
				}
				choice, _ := plan.Choice("ib")
				got, _ := p.NS(model.Algorithm, on.Size(), bytes, choice.Inner)
				// Short messages share a wire with more others than an experiment for γ has.
				if off := got / timing.Slowest.P50; off < 0.6 || off > 1.5 {
					t.Errorf("%v of %d B, %d nodes: by the model %.0f ns, simulated %.0f", plan, bytes, on.Size(), got, timing.Slowest.P50)
				}
			}
		}
	}
}

// What a table has measured of other machines stays.
func TestModelsLeaveMeasuredEntries(t *testing.T) {
	e := table.Entry{
		Collective: "bcast", Levels: table.Sizes{"i": 8, "s": 1}, Place: table.Place{Layout: table.Block, Ranks: table.Processes}, Bytes: 64,
		Candidates: []table.Candidate{{Plan: "shape=flat,fs=all,w=1,ib=adapt/chain", NS: 1, From: table.FromMeasured}},
	}
	made := &table.Table{Version: table.Version, Entries: []table.Entry{e}}
	if !made.Measures(&e) {
		t.Error("a measured entry is not")
	}
	e.Bytes = 65
	if made.Measures(&e) {
		t.Error("an entry that isn't there is measured")
	}
}

func TestModelsRefuse(t *testing.T) {
	sum := tasks.Request{Coll: tasks.Allreduce, Type: tasks.Float32, Op: tasks.Sum, Count: 8}
	for topo, r := range map[string]tasks.Request{"4x1": sum, "4x2": bcast(64)} {
		if _, err := modelSearch(t, topo, r); err == nil || !strings.Contains(err.Error(), "method models knows bcasts among nodes of one rank") {
			t.Errorf("%v on %s: %v", r, topo, err)
		}
	}
	on, _ := levels.Parse("4x1")
	s := tune.Search{Topology: on, Requests: []tasks.Request{bcast(64)}, Space: tune.Space{Registry: all.Submodules()}, Method: tune.Models}
	if _, err := s.Run(t.Context(), &fakeMeter{}); err == nil || !strings.Contains(err.Error(), "runs no experiments") {
		t.Errorf("a meter without experiments: %v", err)
	}
}

package choose_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// tableOf is a table of one entry, with times of some plans, ns, as origins say.
func tableOf(t *testing.T, r tasks.Request, on *levels.Topology, plans []tasks.Plan, times []float64, from ...string) *table.Table {
	t.Helper()
	e := table.PointOf(r, on, "")
	for i, p := range plans {
		c := table.Candidate{Plan: table.Canonical(p, r.Bytes()).String(), NS: times[i], From: table.FromMeasured}
		if i < len(from) {
			c.From = from[i]
		}
		e.Candidates = append(e.Candidates, c)
	}
	made := &table.Table{Version: table.Version, Provenance: table.Provenance{Hosts: []string{"a", "b", "c", "d"}}, Entries: []table.Entry{e}}
	made.Sort()
	read, _ := tabletest.RoundTrip(t, made)
	return read
}

// decision asks a table, then a machine, then the rule.
func decision(t *testing.T, made *table.Table, known *choose.Machine, r tasks.Request, on *levels.Topology) (d choose.Decision, text string) {
	t.Helper()
	q, err := choose.Ask(r, on, all.Submodules(), "")
	if err != nil {
		t.Fatal(err)
	}
	chain := choose.Chain{choose.Forced{}, &choose.Table{Table: made, Origin: "some.json", Machine: known}}
	if known != nil {
		chain = append(chain, known)
	}
	if d, err = append(chain, choose.Rule{}).Choose(q); err != nil {
		t.Fatal(err)
	}
	return d, d.Explain(builtin.Ask(r, on), all.Submodules())
}

// Times of a machine of other sizes hold for this one by what the plans take on both.
func TestCarriedOver(t *testing.T) {
	assumed := &choose.Machine{Machine: machine.Assumed(), Origin: "assumed"}
	there, here := tasktest.Topology(t, "2x2"), tasktest.Topology(t, "8x2")
	r := tasktest.Request(tasks.Bcast, 64)
	var listed []tasks.Plan
	var onThere, onHere []float64
	for _, ib := range []string{"adapt/chain", "nbc/linear", "nbc/binomial"} { // on two nodes all do the same
		plan := tasktest.Plan(t, "shape=han,fs=all,w=1,sb=sm/rings,ib="+ib)
		listed = append(listed, plan)
		onThere = append(onThere, drawn{r, there, assumed}.simulate(t, plan))
		onHere = append(onHere, drawn{r, here, assumed}.simulate(t, plan))
	}
	const chain, linear, binomial = 0, 1, 2
	if onHere[linear] > 0.8*onHere[binomial] || onHere[binomial] > 0.8*onHere[chain] {
		t.Fatalf("on %v the plans take %v: they are to be told apart", here, onHere)
	}
	twice := func(ns float64) float64 { return 2 * ns } // whatever the model is wrong by
	for _, test := range []struct {
		what  string
		times [3]float64
		from  []string
		known *choose.Machine
		want  int
		says  string
	}{
		{
			"no machine",
			[3]float64{100, 110, 120},
			nil, nil, chain,
			"carried over: known of i=2,s=2, here i=8,s=2, table of a, b and 2 more hosts: the order of plans is that of there\n  predicted: 0.1 µs, carried over",
		},
		{
			"a machine",
			[3]float64{twice(onThere[0]), twice(onThere[1]), twice(onThere[2])},
			nil, assumed, linear,
			fmt.Sprintf("times are corrected by simulations on both, on assumed\n  predicted: %.1f µs, carried over", twice(onHere[linear])/1e3),
		},
		{
			"slower than its simulation", [3]float64{twice(onThere[0]), 3 * twice(onThere[1]), twice(onThere[2])}, nil, assumed, binomial, "carried over",
		},
		{
			"predicted",
			[3]float64{twice(onThere[0]), 9 * twice(onThere[1]), twice(onThere[2])},
			[]string{"measured", "predicted"},
			assumed, linear,
			"machine: assumed, assumed",
		},
	} {
		d, text := decision(t, tableOf(t, r, there, listed, test.times[:], test.from...), test.known, r, here)
		if got := table.Canonical(plans.Named(builtin.Ask(r, here), d.Plan, all.Submodules()), r.Bytes()); !got.Equal(listed[test.want]) || !strings.Contains(text, test.says) {
			t.Errorf("%s: want %v, and %q\n%s", test.what, listed[test.want], test.says, text)
		}
	}
	d, text := decision(t, tableOf(t, r, there, listed[:1], onThere[:1]), assumed, r, here)
	if a := d.FromTable(); a == nil || d.Plan.Equal(listed[chain]) || !strings.Contains(text, "leaves it open: its times are carried over: ") || !strings.Contains(text, "the machine's own plan takes ") {
		t.Errorf("only the slowest plan is known\n%s", text)
	}
}

// By the times of a machine of other sizes a plan is chosen that takes about as long as the best one known here, whatever
// the sizes.
func TestCarriedChoicesHold(t *testing.T) {
	rng := rand.New(rand.NewPCG(2026, 11))
	sum, n := 0.0, 0.0
	for range cases(25, 400) {
		shapes := [][2]string{{"8x2", "4x2"}, {"4x2", "8x2"}, {"4x1", "7x1"}, {"3x2", "6x2"}, {"2x4", "2x2"}, {"5x2", "4x3"}, {"16x1", "4x1"}, {"4x2", "2x1"}}[rng.IntN(8)]
		there, here := tasktest.Topology(t, shapes[0]), tasktest.Topology(t, shapes[1])
		coll := []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.Alltoall, tasks.ReduceScatter, tasks.Gather, tasks.Scatter}[rng.IntN(8)]
		r := tasktest.Request(coll, 4*(1+rng.Int64N(1<<(4+rng.IntN(15)))))
		known := &choose.Machine{Machine: machinetest.Speeds[rng.IntN(len(machinetest.Speeds))].Machine(), Origin: "drawn"}
		known.Provenance.Method = "drawn"
		asked := builtin.Ask(r, there)
		ruled, _ := asked.Choose(tasks.Plan{})
		best, err := priced.Choose(known.Machine, asked, ruled, all.Submodules(), priced.Exact)
		if err != nil {
			t.Fatal(err)
		}
		if len(best.Plans) == 0 {
			continue
		}
		var listed []tasks.Plan
		var times []float64
		factor := math.Exp(rng.Float64() - 0.5)
		for _, p := range best.Plans {
			listed = append(listed, p.Plan)
			times = append(times, factor*drawn{r, there, known}.simulate(t, p.Plan))
		}
		d, text := decision(t, tableOf(t, r, there, listed, times), known, r, here)
		own, _ := drawn{r, here, known}.decide(t)
		its, mine := drawn{r, here, known}.simulate(t, d.Plan), drawn{r, here, known}.simulate(t, own)
		sum, n = sum+math.Log(its/mine), n+1
		if its > 1.25*mine {
			t.Errorf("%v of %v on %v, known of %v: %.1f µs, %v takes %.1f\n%s", r, coll, here, there, its/1e3, own, mine/1e3, text)
		}
	}
	if mean := math.Exp(sum / n); mean > 1.02 {
		t.Errorf("choices take %.3f of the machine's own on average, want 1.02 at most", mean)
	} else {
		t.Logf("%.0f choices, %.3f of the machine's own on average", n, mean)
	}
}

package distill_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/planner/distill"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// drawnTable is a table of bcasts on machines of several sizes. Each point has the same plans, with drawn
// times of which one plan's are often the best.
func drawnTable(t *testing.T, rng *rand.Rand) *table.Table {
	t.Helper()
	var all []tasks.Plan
	for _, text := range []string{"shape=flat,fs=all,w=1,ib=adapt/chain", "shape=flat,fs=all,w=1,ib=adapt/binomial", "shape=flat,fs=all,w=1,ib=nbc/linear"} {
		p := tasktest.Plan(t, text)
		all = append(all, p)
	}
	made := &table.Table{Version: table.Version}
	for _, nodes := range []int{2, 4, 8, 16}[rng.IntN(3):] {
		for size := int64(1); size <= 1<<22; size *= 1 << (2 + rng.IntN(6)) {
			e := table.Entry{Collective: "bcast", Levels: table.Sizes{"i": nodes, "s": 2}, Place: table.Place{Layout: table.Block, Ranks: table.Processes}, Bytes: size}
			for k, p := range all {
				ns := 1000 + 4000*rng.Float64()
				if k == int(size%3) {
					ns /= 2
				}
				e.Candidates = append(e.Candidates, table.Candidate{Plan: p.String(), Parsed: p, NS: ns, From: table.FromMeasured})
			}
			made.Entries = append(made.Entries, e)
		}
	}
	made.Sort()
	return made
}

// params is the request of an entry.
func params(e *table.Entry) *rules.Params {
	p := &rules.Params{Coll: tasks.Bcast}
	for q, v := range map[rules.Param]int64{
		rules.Nodes: int64(e.Levels["i"]), rules.PerNode: int64(e.Levels["s"]), rules.Bytes: e.Bytes,
		rules.Balanced: 1, rules.Ordered: 1, rules.Processes: 1, rules.Regular: 1,
	} {
		p.Set(q, v)
	}
	return p
}

// Whatever a table has: its rules are found faultless, cost as much as they say and no more than the
// bounds allow, and are the same each time. Requests unlike the table's are left to others.
func TestDrawnTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 1))
	for range 60 {
		made, bounds := drawnTable(t, rng), distill.Bounds{Mean: 1 + rng.Float64()/2, Worst: 1.2 + rng.Float64(), Most: 1 + rng.IntN(60)}
		got, b := makeRules(t, made, bounds)
		again, err := distill.Rules(made, bounds)
		if err != nil || again.Text != got.Text {
			t.Fatalf("%v\n%s\nthen\n%s", err, got.Text, again.Text)
		}
		sum, worst := 0.0, 0.0
		for i := range made.Entries {
			e := &made.Entries[i]
			l, _ := b.Decide(params(e))
			if l == nil {
				t.Fatalf("%s: nothing is decided by\n%s", e.Key(), got.Text)
			}
			for _, c := range e.Candidates {
				if c.Plan == b.Plan(l, params(e)).String() {
					sum, worst = sum+c.NS/e.Candidates[0].NS, max(worst, c.NS/e.Candidates[0].NS)
				}
			}
		}
		cost, mean := got.Collectives[0], sum/float64(len(made.Entries))
		if fmt.Sprintf("%.9f %.9f", cost.Mean, cost.Worst) != fmt.Sprintf("%.9f %.9f", mean, worst) || cost.Points != len(made.Entries) {
			t.Errorf("%+v, but the mean is %v and the worst %v of %d in\n%s", cost, mean, worst, len(made.Entries), got.Text)
		}
		if cost.Rules > bounds.Most || bounds.Most >= cost.Points && mean > bounds.Mean+1e-9 {
			t.Errorf("%+v beyond %+v", cost, bounds)
		}
		far := made.Entries[0]
		far.Levels = table.Sizes{"i": 100, "s": 2}
		if l, _ := b.Decide(params(&far)); l != nil {
			t.Errorf("100 nodes get %s by\n%s", l.Text, got.Text)
		}
	}
}

// Bounds below 1 and tables without points are refused.
func TestRefused(t *testing.T) {
	made := drawnTable(t, rand.New(rand.NewPCG(41, 2)))
	for _, b := range []distill.Bounds{{Mean: .9}, {Worst: .5}, {Most: -1}} {
		if _, err := distill.Rules(made, b); err == nil {
			t.Errorf("%+v is accepted", b)
		}
	}
	if _, err := distill.Rules(&table.Table{}, distill.Bounds{}); err == nil {
		t.Error("rules of an empty table")
	}
}

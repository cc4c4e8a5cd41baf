package choose_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// written compiles rules.
func written(t *testing.T, text string) *rules.Base {
	t.Helper()
	b, err := rules.Parse("some.rules", text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decided asks a chain for a plan, with how it explains it.
func decided(t *testing.T, r tasks.Request, on *levels.Topology, links string, chain ...choose.Chooser) (choose.Decision, string) {
	t.Helper()
	q, err := choose.Ask(r, on, all.Submodules(), links)
	if err != nil {
		t.Fatal(err)
	}
	d, err := choose.Chain(chain).Choose(q)
	if err != nil {
		t.Fatal(err)
	}
	return d, d.Explain(q.Asked, q.Registry)
}

// Rules ask for the request, for the links by their name or by the machine, and for the machine's cores.
// Where they don't decide, or not for a plan that fits, the built-in rule does.
func TestRulesDecide(t *testing.T) {
	cores := *machine.Assumed()
	cores.Cores.PerNode = 7
	known := &choose.Machine{Machine: &cores, Origin: "here"}
	on := tasktest.Topology(t, "4x2")
	builtin, _ := builtin.Choose(request, on, tasks.Plan{})
	for _, test := range []struct {
		rules, links string
		machine      *choose.Machine
		plan         string // beginning; empty: the built-in rule's
		why          string // in the explanation
	}{
		{"bcast: if bytes <= 4KiB then shape=flat,ib=adapt/chain", "", nil, "shape=flat,", "some.rules:1: shape=flat,ib=adapt/chain\n  rules: line 1: bytes <= 4KiB holds: bytes 4KiB"},
		{"bcast: if bytes < 4KiB then shape=flat", "", nil, "", "some.rules decides nothing here"},
		{"bcast: default", "", nil, "", "some.rules:1 leaves it open: default"},
		{"bcast: if rate = 10gbit then shape=flat because \"at {rate}\"", "10gbit", nil, "shape=flat,", "shape=flat: at 10gbit"},
		{"bcast: if rate > 0 then shape=flat", "", nil, "", "rate > 0 does not hold: rate unknown"},
		{"bcast: if latency > 0 then shape=flat", "10gbit", nil, "", "latency unknown"},
		{"bcast: if latency = 50us and rate < 2gbit then shape=flat", "10gbit", known, "shape=flat,", "latency 50us"},
		{"bcast: if cores = 7 then shape=flat", "", known, "shape=flat,", "cores 7"},
		{"bcast: if cores > 0 then shape=flat", "", nil, "", "cores unknown"},
		{"bcast: shape=flat,ib=nbc/recdoubling", "", nil, "", "unfit, so others decide"},
		{"segments bcast: fs=1KiB,w=3", "", nil, "shape=han,fs=1KiB,w=3", "some.rules:1: fs=1KiB,w=3"},
	} {
		d, text := decided(t, request, on, test.links, choose.Forced{}, &choose.Rules{Base: written(t, test.rules), Machine: test.machine}, choose.Rule{})
		want := test.plan
		if want == "" {
			want = builtin.String()
		}
		if !strings.HasPrefix(d.Plan.String(), want) || !strings.Contains(text, test.why) {
			t.Errorf("%s: %v, want %s, and %q in\n%s", test.rules, d.Plan, want, test.why, text)
		}
		if d.IsOpen() != (test.plan == "") {
			t.Errorf("%s: open to trials: %v", test.rules, d.IsOpen())
		}
	}
}

// A function may decide, leave it open, or say a plan that doesn't fit. One that is no plan is an error.
func TestCompiledDecides(t *testing.T) {
	on := tasktest.Topology(t, "4x2")
	for _, test := range []struct {
		plan  string
		known bool
		has   string // in the plan
		why   string
	}{
		{"shape=flat,ib=adapt/chain", true, "ib=adapt/chain", "Options.Decide: shape=flat,ib=adapt/chain\n"},
		{"", false, "shape=han", "Options.Decide: leaves it open\n"},
		{"shape=lanes", true, "shape=han", "Options.Decide: shape=lanes: unfit, so others decide: "},
	} {
		decide := func(p *rules.Params) (string, bool) { return test.plan, test.known && p.Get(rules.Nodes) == 4 }
		d, text := decided(t, request, on, "", choose.Forced{}, &choose.Compiled{Decide: decide}, choose.Rule{})
		if !strings.Contains(d.Plan.String(), test.has) || !strings.Contains(text, test.why) {
			t.Errorf("%q: %v, want %s, and %q in\n%s", test.plan, d.Plan, test.has, test.why, text)
		}
	}
	q, err := choose.Ask(request, on, all.Submodules(), "")
	if err != nil {
		t.Fatal(err)
	}
	c := &choose.Compiled{Decide: func(*rules.Params) (string, bool) { return "shape=round", true }}
	if _, err := (choose.Chain{c, choose.Rule{}}).Choose(q); err == nil || !strings.Contains(err.Error(), `bcast`) || !strings.Contains(err.Error(), `Options.Decide: plan "shape=round": unknown shape`) {
		t.Errorf("no plan: %v", err)
	}
}

// Whatever is asked of whom: the plan has the forced part and can be compiled, and an equal question gets
// the same plan for the same reasons.
func TestDecisionsAreTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	forced, err := tasks.ParseForced("fs=8KiB;w=5")
	if err != nil {
		t.Fatal(err)
	}
	text := `all: if nodes > 3 and bytes > 1KiB then shape=flat elif pow2(bytes) then w=7
bcast: if root > 0 then fs={near(bytes / 4, 1KiB, 1MiB)}`
	for range 150 {
		specs := []string{"1", "4", "3x1", "4x2", "2x2x2", "a:3,b:1", "4x2/rr"}
		on := tasktest.Topology(t, specs[rng.IntN(len(specs))])
		colls := tasks.Requestable()
		r := tasktest.Request(colls[rng.IntN(len(colls))], 4*rng.Int64N(1<<rng.IntN(18)+1))
		if r.Coll.IsRooted() {
			r.Root = levels.Rank(rng.IntN(on.Size()))
		}
		chain := choose.Chain{choose.Forced{Plans: forced, Origin: "us"}, &choose.Rules{Base: written(t, text)}, choose.Rule{}}
		one, why := decided(t, r, on, "", chain...)
		two, again := decided(t, r, on, "", chain...)
		if !one.Plan.Equal(two.Plan) || why != again {
			t.Fatalf("%v on %v: %v and %v:\n%s\n%s", r, on, one.Plan, two.Plan, why, again)
		}
		if one.Plan.Segment != 8<<10 || one.Plan.Window != 5 || !strings.Contains(why, "forced by us: fs=8KiB,w=5") {
			t.Errorf("%v on %v: %v is not as forced:\n%s", r, on, one.Plan, why)
		}
		if _, err := builtin.Fits(r, on, one.Plan, all.Submodules()); err != nil {
			t.Errorf("%v on %v: %v", r, on, err)
		}
	}
}

// CheckRules tells plans that no rank can compile from those that fit some requests, with their lines.
func TestCheckRules(t *testing.T) {
	broken, partly := choose.CheckRules(written(t, `bcast: if bytes < 1KiB then shape=flat
bcast: if nodes > 1 then shape=flat,ib=nbc/recdoubling
allgather: if bytes > 4KiB then shape=flat,iag=nbc/neighbor
reduce: if nodes = 7 then shape=lanes
bcast: default`), all.Submodules())
	if len(broken) != 2 || broken[0].Line != 2 || broken[1].Line != 4 || !strings.HasPrefix(broken[0].Message, "no rank can compile this plan: bcast") {
		t.Errorf("broken: %+v", broken)
	}
	if len(partly) != 1 || partly[0].Line != 3 || !strings.Contains(partly[0].Message, "others decide where it doesn't: allgather") {
		t.Errorf("partly: %+v", partly)
	}
	var many strings.Builder // more numbers than are tried
	for i := range 40 {
		fmt.Fprintf(&many, "bcast: if bytes < %d then shape=flat\n", 5000*(i+1))
	}
	if broken, partly := choose.CheckRules(written(t, many.String()), all.Submodules()); len(broken)+len(partly) > 0 {
		t.Errorf("of many rules broken: %+v, partly: %+v", broken, partly)
	}
}

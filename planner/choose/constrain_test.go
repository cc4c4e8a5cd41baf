package choose_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// drawn is a request with choosers: on a machine with exact numbers, on one measured in a hurry, or on none.
type drawn struct {
	r     tasks.Request
	on    *levels.Topology
	known *choose.Machine // nil: none
}

func draw(t *testing.T, rng *rand.Rand) (d drawn) {
	d.on = tasktest.Topology(t, []string{"2x1", "4x1", "7x1", "2x4", "3x2", "4x4", "8x2", "1x4", "2x2x2", "16x1"}[rng.IntN(10)])
	data := slices.DeleteFunc(tasks.Requestable(), func(c tasks.Collective) bool { return !c.HasData() })
	d.r = tasktest.Request(data[rng.IntN(len(data))], 4*(1+rng.Int64N(1<<rng.IntN(20))))
	if d.r.Rooted() {
		d.r.Root = levels.Rank(rng.IntN(d.on.Size()))
	}
	if kind := rng.IntN(3); kind > 0 {
		d.known = &choose.Machine{Machine: machinetest.Speeds[rng.IntN(len(machinetest.Speeds))].Machine(), Origin: "drawn"}
		if d.known.Provenance.Method = "drawn"; kind == 2 {
			d.known.Provenance.Method = choose.Hastily + "1ms"
		}
	}
	return d
}

// decide returns the plan with some words forced.
func (d drawn) decide(t *testing.T, words ...string) (tasks.Plan, error) {
	t.Helper()
	forced, err := tasks.ParseForced(strings.Join(words, ","))
	if err != nil {
		t.Fatal(err)
	}
	q, err := choose.Ask(d.r, d.on, all.Submodules(), "")
	if err != nil {
		t.Fatal(err)
	}
	chain := choose.Chain{choose.Forced{Plans: forced, Origin: "a test"}}
	if d.known != nil {
		chain = append(chain, d.known)
	}
	decision, err := append(chain, choose.Rule{}).Choose(q)
	if err == nil {
		_, err = q.Fits(decision.Plan, q.Registry)
	}
	return decision.Plan, err
}

// cases is how many are drawn.
func cases(few, many int) int {
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		return many
	}
	return few
}

// Forcing any words of the plan that is chosen anyway changes nothing.
func TestOwnWordsChangeNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 3))
	for range cases(60, 500) {
		d := draw(t, rng)
		chosen, err := d.decide(t)
		if err != nil {
			t.Fatal(err)
		}
		own := strings.Split(chosen.String(), ",")
		sets := [][]string{own}
		for _, word := range own {
			sets = append(sets, []string{word})
		}
		for range 3 {
			sets = append(sets, slices.DeleteFunc(slices.Clone(own), func(string) bool { return rng.IntN(2) == 0 }))
		}
		for _, words := range sets {
			if got, err := d.decide(t, words...); err != nil || got.String() != chosen.String() {
				t.Errorf("%v on %v, known %t: %v is chosen; with %v forced %v, %v", d.r, d.on, d.known != nil, chosen, words, got, err)
			}
		}
	}
}

// With a word of any plan of the catalogue a plan is found that has it. On exact numbers it takes no longer than
// any rival of the rule's plan that has the word, beyond what the search doesn't tell apart.
func TestForcedWordsNarrowTheChoice(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 3))
	compared := 0
	for range cases(60, 500) {
		d := draw(t, rng)
		asked := builtin.Ask(d.r, d.on)
		ruled, _ := asked.Choose(tasks.Plan{})
		some := plans.All(asked, ruled, all.Submodules())
		own := strings.Split(some[rng.IntN(len(some))].String(), ",")
		word := own[rng.IntN(len(own))]
		has := func(p tasks.Plan) bool { return slices.Contains(strings.Split(p.String(), ","), word) }
		got, err := d.decide(t, word)
		if err != nil || !has(got) {
			t.Errorf("%v on %v: %s is forced: %v, %v", d.r, d.on, word, got, err)
			continue
		}
		if d.known == nil || strings.HasPrefix(d.known.Provenance.Method, choose.Hastily) {
			continue
		}
		ns := d.simulate(t, got)
		for _, p := range plans.Rivals(asked, ruled) {
			if _, err := asked.Fits(p, all.Submodules()); err != nil {
				continue
			}
			if p = plans.Named(asked, p, all.Submodules()); !has(p) {
				continue
			}
			compared++
			if its := d.simulate(t, p); ns > its*(1+priced.Exact) {
				t.Errorf("%v on %v: %s is forced: %v takes %.1f µs, %v takes %.1f", d.r, d.on, word, got, ns/1e3, p, its/1e3)
			}
		}
	}
	if compared < 100 {
		t.Errorf("%d rivals have the words, want a hundred at least", compared)
	}
}

// simulate returns the time of a plan on the machine, ns.
func (d drawn) simulate(t *testing.T, p tasks.Plan) float64 {
	t.Helper()
	job, err := (&sim.Compilation{Request: d.r, Topology: d.on, Plan: p, Registry: all.Submodules()}).Job()
	if err != nil {
		t.Fatal(err)
	}
	result, err := job.Run(d.known.Machine, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return result.Time.Nanoseconds()
}

// A table's fastest plan with the forced words is taken as it is, before faster ones that would need them.
func TestForcedWordsInTables(t *testing.T) {
	const slower = "shape=han,fs=all,w=1,ib=adapt/binomial//4,sb=sm/rings"
	entry := `{"collective":"bcast","levels":{"i":4,"s":2},"layout":"block","ranks":"processes","bytes":4096,"candidates":[{"plan":"` + tablePlan + `","ns":200,"from":"measured"},{"plan":"` + slower + `","ns":210,"from":"measured"}]}`
	forced, err := tasks.ParseForced("ib=adapt/binomial//4")
	if err != nil {
		t.Fatal(err)
	}
	q, err := choose.Ask(request, tasktest.Topology(t, "4x2"), all.Submodules(), "")
	if err != nil {
		t.Fatal(err)
	}
	chain := choose.Chain{choose.Forced{Plans: forced}, &choose.Table{Table: tabletest.Of(t, entry)}, choose.Rule{}}
	if d, err := chain.Choose(q); err != nil || d.Plan.String() != slower {
		t.Errorf("%v, %v; want the table's second plan %s", d.Plan, err, slower)
	}
}

package choose_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// What the ranks have measured is the plan, its time and a line for each rival.
func TestMeasured(t *testing.T) {
	m := &choose.Measured{Trials: []choose.Trial{
		{Plan: tasktest.Plan(t, "shape=flat"), NS: 2000, Calls: 10}, {Plan: tasktest.Plan(t, "shape=han"), NS: 3000, Calls: 4}, {Plan: tasktest.Plan(t, "shape=sag"), NS: 1990, Calls: 2},
	}}
	p, known := m.Plan()
	d := choose.Decision{Answers: []choose.Answer{m}}
	ns, timed := d.Predicted()
	if !known || p.Shape != tasks.Flat || !timed || ns != 2000 {
		t.Errorf("%v in %v ns", p, ns)
	}
	var text strings.Builder
	m.Explain(&text)
	for _, want := range []string{
		"predicted: 2.0 µs, measured by these ranks in 10 calls, beside 2 other plans\n",
		"runner-up: shape=han: 3.0 µs in 4 calls, 50.0% more\n",
		"runner-up: shape=sag: 2.0 µs in 2 calls, 0.5% less, which is too little to be sure\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// Finalists are the decided plan, then others, each once, as many as wanted and all to be compiled.
func TestFinalists(t *testing.T) {
	for _, spec := range []string{"4x1", "4x2", "8"} {
		q, err := choose.Ask(request, tasktest.Topology(t, spec), all.Submodules(), "")
		if err != nil {
			t.Fatal(err)
		}
		d, err := choose.Chain{choose.Forced{}, choose.Rule{}}.Choose(q)
		if err != nil || !d.IsOpen() {
			t.Fatalf("%s: %v, open to trials: %v", spec, err, d.IsOpen())
		}
		for most := 1; most < 6; most++ {
			some, err := d.Finalists(q, nil, most)
			if err != nil || len(some) == 0 || len(some) > most || !some[0].Equal(d.Plan) {
				t.Fatalf("%s: %d of %v, %v; first %v", spec, most, some, err, d.Plan)
			}
			seen := map[string]bool{}
			for _, p := range some {
				if _, err := q.Fits(p, q.Registry); err != nil {
					t.Errorf("%s: %v", spec, err)
				}
				if text := table.Canonical(p, request.Bytes()).String(); seen[text] {
					t.Errorf("%s: %s is there twice", spec, text)
				} else {
					seen[text] = true
				}
			}
		}
	}
}

// A choice forced for a level and all collectives holds for those with a task for it. Plans that the
// ranks left can't run are told.
func TestForcedForOthers(t *testing.T) {
	forced, err := tasks.ParseForced("i=nbc/rabenseifner")
	if err != nil {
		t.Fatal(err)
	}
	dropped, err := tasks.ParseForced("bcast:s=solo")
	if err != nil {
		t.Fatal(err)
	}
	f := choose.Forced{Plans: forced, Dropped: dropped, Origin: "TIERFLOW_PLAN"}
	on := tasktest.Topology(t, "4x2")
	d, text := decided(t, request, on, "", f, choose.Rule{})
	if strings.Contains(d.Plan.String(), "rabenseifner") || d.Forced.String() != "" ||
		!strings.Contains(text, "forced by TIERFLOW_PLAN: i=nbc/rabenseifner, but for other collectives: it does no task of bcast\n") ||
		!strings.Contains(text, "forced by TIERFLOW_PLAN: s=solo, but the ranks that are left can't run it\n") {
		t.Errorf("%v\n%s", d.Plan, text)
	}
	sum := request
	sum.Coll, sum.Op = tasks.Reduce, tasks.Sum
	if d, text := decided(t, sum, on, "", f, choose.Rule{}); !strings.Contains(d.Plan.String(), "i=nbc/rabenseifner") || d.IsOpen() {
		t.Errorf("%v\n%s", d.Plan, text)
	}
}

// Whether a choice has a task is a question to its level alone: there it stays, also where it does
// none at the other level, and also if a level has no tasks.
func TestForcedForALevel(t *testing.T) {
	sum := tasks.Request{Coll: tasks.Allreduce, Count: 1024, Type: tasks.Float32, Op: tasks.Sum}
	for _, test := range []struct {
		topology, forced string
		stays            bool
	}{
		{"4x2", "shape=ar,i=nbc/recdoubling", true},
		{"4x2", "shape=han,s=nbc/recdoubling", false},
		{"4x2", "shape=ar,s=sm", true},
		{"1x4", "i=nbc/rabenseifner", true},
	} {
		forced, err := tasks.ParseForced(test.forced)
		if err != nil {
			t.Fatal(err)
		}
		q, err := choose.Ask(sum, tasktest.Topology(t, test.topology), all.Submodules(), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (choose.Forced{Plans: forced}).Choose(q); err != nil {
			t.Fatal(err)
		}
		if got := q.Forced.String() == test.forced; got != test.stays {
			t.Errorf("%s on %s: %v is forced", test.forced, test.topology, q.Forced)
		}
	}
}

// An impossible request is an error, and so is a plan with a word unknown to the registry. Both name the request.
func TestAskErrors(t *testing.T) {
	on := tasktest.Topology(t, "4x2")
	outside := request
	outside.Root = 8
	if _, err := choose.Ask(outside, on, all.Submodules(), ""); err == nil || !strings.Contains(err.Error(), "bcast") {
		t.Errorf("a root outside: %v", err)
	}
	q, err := choose.Ask(request, on, submodules.Registry{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (choose.Chain{choose.Rule{}}).Choose(q); err == nil || !strings.HasPrefix(err.Error(), "bcast") {
		t.Errorf("an empty registry: %v", err)
	}
}

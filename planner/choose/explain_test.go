package choose_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Whoever chooses, each plan has a time: of a collective without a price, by rules, and where a
// table knows nothing.
func TestPlansArePredicted(t *testing.T) {
	reg := all.Submodules()
	empty := &choose.Table{Table: &table.Table{}, Origin: "some.json"}
	base, err := rules.Parse("some.rules", "bcast: shape=flat,ib=adapt/binomial")
	if err != nil {
		t.Fatal(err)
	}
	known := &choose.Machine{Machine: machine.Assumed(), Origin: "here"}
	scan := tasks.Request{Coll: tasks.Scan, Op: tasks.Sum, Type: tasks.Float32, Count: 1000}
	const simulated, assumed = ", simulated", " on an assumed machine"
	for _, test := range []struct {
		r        tasks.Request
		topology string
		choosers choose.Chain
		want     string // after the time
	}{
		{scan, "4x2", choose.Chain{choose.Rule{}}, simulated + assumed},
		{scan, "1", choose.Chain{choose.Rule{}}, simulated + assumed},
		{scan, "4x2", choose.Chain{known, choose.Rule{}}, simulated + "\n"},
		{request, "4x2", choose.Chain{empty, choose.Rule{}}, assumed},
		{request, "4x2", choose.Chain{&choose.Rules{Base: base}, choose.Rule{}}, assumed},
		{tasks.Request{Coll: tasks.Barrier}, "2x2x2", choose.Chain{choose.Rule{}}, assumed},
	} {
		on := tasktest.Topology(t, test.topology)
		q, err := choose.Ask(test.r, on, reg, "")
		if err != nil {
			t.Fatal(err)
		}
		chain := test.choosers
		if _, narrows := chain[0].(choose.Forced); !narrows {
			chain = append(choose.Chain{choose.Forced{}}, chain...)
		}
		d, err := chain.Choose(q)
		if err != nil {
			t.Fatal(err)
		}
		text := d.Explain(q.Asked, reg)
		_, predicted, found := strings.Cut(text, "  predicted: ")
		if !found || strings.Contains(text, "nothing") || !strings.Contains(predicted, " µs"+test.want) {
			t.Errorf("%v on %s: no time%s in\n%s", test.r, test.topology, test.want, text)
		}
	}
}

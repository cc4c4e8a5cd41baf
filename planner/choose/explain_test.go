package choose_test

import (
	"fmt"
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
		{tasktest.Request(tasks.Alltoall, 4), "2x2x3", choose.Chain{known, choose.Rule{}}, ", the best of "}, // without a price
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
		_, predicted, found := strings.Cut(strings.Replace(text, "  simulated: ", "  predicted: ", 1), "  predicted: ")
		if !found || strings.Contains(text, "nothing") || strings.Contains(text, " 0.0 µs") || !strings.Contains(predicted, " µs"+test.want) {
			t.Errorf("%v on %s: no time%s in\n%s", test.r, test.topology, test.want, text)
		}
	}
}

// The times of a plan's tasks are those of its price: none takes longer, and one after the other they
// take as long, or longer.
func TestTasksTakeAsLongAsThePlan(t *testing.T) {
	for _, count := range []int64{1 << 10, 1 << 20, 1 << 24} {
		r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Float32, Count: count}
		_, text := decided(t, r, tasktest.Topology(t, "8x2"), "", choose.Forced{}, &choose.Machine{Machine: machine.Assumed(), Origin: "here"}, choose.Rule{})
		var whole, all float64
		_, priced, _ := strings.Cut(text, "  price: ")
		if _, err := fmt.Sscanf(priced, "%f µs: ", &whole); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		for _, line := range strings.Split(text, "\n  task ")[1:] {
			var first, segments, each float64
			_, line, _ = strings.Cut(line, ": ")
			_, line, _ = strings.Cut(line, ": ")
			if n, _ := fmt.Sscanf(line, "%f µs for the first of %f segments, %f for", &first, &segments, &each); n != 1 && n != 3 {
				t.Fatalf("no times in %q", line)
			}
			took := first + max(0, segments-1)*each
			if all += took; took > 1.01*whole {
				t.Errorf("%d: a task takes %v µs, the plan %v µs\n%s", count, took, whole, text)
			}
		}
		if all < 0.99*whole {
			t.Errorf("%d: all tasks take %v µs, the plan %v µs\n%s", count, all, whole, text)
		}
	}
}

package choose_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

var request = tasks.Request{Coll: tasks.Bcast, Count: 1024, Type: tasks.Float32}

const tablePlan = "shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots"

// Nobody is asked once a chooser knows.
func TestChainEndsWhereSomebodyKnows(t *testing.T) {
	entry := `{"collective":"bcast","levels":{"i":4,"s":2},"layout":"block","ranks":"processes","bytes":4096,"candidates":[{"plan":"` + tablePlan + `","ns":200,"from":"measured"}]}`
	forced, err := tasks.ParseForced("s=solo")
	if err != nil {
		t.Fatal(err)
	}
	byTable := &choose.Table{Table: tabletest.Of(t, entry), Origin: "some.json"}
	byPrice := &choose.Machine{Machine: machine.Assumed(), Origin: "assumed"}
	for _, test := range []struct {
		topology string
		plans    tasks.Forced
		want     string // who is asked
	}{
		{"4x2", nil, "forced table"},
		{"4x2", forced, "forced table table"},                // without what is forced, and with it
		{"32x2", nil, "forced table prices"},                 // too far from the table's machine
		{"32x2", forced, "forced table prices table prices"}, // prices complete it, too
		{"a:9", nil, "forced table prices rule"},             // one node: nothing to price
	} {
		on := tasktest.Topology(t, test.topology)
		q, err := choose.Ask(request, on, all.Submodules(), "")
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		spy := func(name string, c choose.Chooser) choose.Chooser { return spy{name, c, &asked} }
		chain := choose.Chain{
			spy("forced", choose.Forced{Plans: test.plans, Origin: "us"}),
			spy("table", byTable), spy("prices", byPrice), spy("rule", choose.Rule{}),
		}
		d, err := chain.Choose(q)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(asked, " "); got != test.want {
			t.Errorf("%s with %v: asked %s, want %s", test.topology, test.plans, got, test.want)
		}
		if test.plans != nil && !strings.Contains(d.Plan.String(), "s=solo") {
			t.Errorf("%s: %v doesn't have what is forced", test.topology, d.Plan)
		}
		if knows := slices.Contains(asked, "rule"); !knows && strings.Contains(d.Explain(q.Asked, all.Submodules()), "  rule: ") {
			t.Errorf("%s: the rule explains what it didn't choose", test.topology)
		}
	}
}

// spy notes that its chooser is asked.
type spy struct {
	name  string
	of    choose.Chooser
	asked *[]string
}

func (s spy) Choose(q *choose.Question) (choose.Answer, error) {
	*s.asked = append(*s.asked, s.name)
	return s.of.Choose(q)
}

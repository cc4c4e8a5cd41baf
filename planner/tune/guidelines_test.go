package tune_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

const suspicious = `{"tierflow_table":2,"provenance":{},"entries":[
{"collective":"bcast","levels":{"i":2,"s":2},"layout":"block","ranks":"processes","bytes":64,"candidates":[{"plan":"shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots","ns":100,"low_ns":90,"high_ns":110,"from":"measured"}]},
{"collective":"bcast","levels":{"i":2,"s":2},"layout":"block","ranks":"processes","bytes":128,"candidates":[{"plan":"shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots","ns":%d,"low_ns":40,"high_ns":%d,"from":"measured"}]},
{"collective":"bcast","levels":{"i":3,"s":2},"layout":"block","ranks":"processes","bytes":128,"candidates":[{"plan":"shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots","ns":2,"from":"measured"}]},
{"collective":"reduce","levels":{"i":2,"s":2},"layout":"block","ranks":"processes","type":"f32","op":"built-in","bytes":128,"candidates":[{"plan":"shape=han,fs=all,w=1,ir=adapt/chain,sr=sm/slots","ns":50,"low_ns":40,"high_ns":60,"from":"measured"}]},
{"collective":"allreduce","levels":{"i":2,"s":2},"layout":"block","ranks":"processes","type":"f32","op":"built-in","bytes":128,"candidates":[
  {"plan":"shape=han,fs=all,w=1,ib=adapt/chain,ir=adapt/chain,sb=sm/slots,sr=sm/slots","ns":200,"low_ns":%d,"high_ns":210,"from":"predicted"},
  {"plan":"shape=flat,fs=all,w=1,ib=adapt/chain,ir=adapt/chain","ns":%d,"from":"measured"}]}
]}`

func TestViolations(t *testing.T) {
	for _, test := range []struct {
		bcast, bcastHigh, low, flat int
		want                        []string
	}{
		{50, 60, 190, 205, []string{"more bytes are much faster: bcast of 128B on i=2,s=2", "slower than reduce and bcast: allreduce of 128B on i=2,s=2", "may lose to flat: allreduce of 128B on i=2,s=2"}},
		{50, 80, 190, 250, []string{"slower than reduce and bcast"}},
		{50, 80, 135, 230, nil}, // the intervals touch
	} {
		made := tabletest.Parse(t, fmt.Sprintf(suspicious, test.bcast, test.bcastHigh, test.low, test.flat))
		all := tune.Violations(made)
		for i, v := range all {
			if i >= len(test.want) || !strings.HasPrefix(v.String(), test.want[i]) {
				t.Errorf("%+v: %v", test, v)
			}
		}
		if len(all) != len(test.want) {
			t.Errorf("%+v: %d violations", test, len(all))
		}
	}
}

// A table that predicts below the wire, and chooses by it, is found out on the machine. One with the rule's plan and
// its time is not.
func TestViolationsOn(t *testing.T) {
	const entry = `{"tierflow_table":2,"provenance":{},"entries":[{"collective":"allreduce","levels":{"i":8,"s":2},"layout":"block","ranks":"processes","type":"f32","op":"built-in","bytes":1048576,"candidates":[
  {"plan":"%s","ns":%d,"from":"predicted"}]}]}`
	like := func(coll tasks.Collective, bytes int64, _ *levels.Topology) (tasks.Request, error) {
		return tasktest.Request(coll, bytes), nil
	}
	on := tasktest.Topology(t, "8x2")
	r := tasktest.Request(tasks.Allreduce, 1<<20)
	ruled := tune.Space{Registry: all.Submodules()}.Rule(r, on)
	took, err := tune.NewSimulatedMeter(on, machine.Assumed(), all.Submodules()).Collective(t.Context(), r, ruled, stats.Stop{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		plan string
		ns   int
		want []string
	}{
		{"shape=flat-rsag,fs=all,w=1,iag=adapt/ring,irs=adapt/ring", 4_300_000, []string{"below the wire", "takes longer than the table says", "loses to the built-in rule"}},
		{ruled.String(), int(took.Slowest.P50), nil},
	} {
		some, n, err := tune.ViolationsOn(t.Context(), machine.Assumed(), tabletest.Parse(t, fmt.Sprintf(entry, test.plan, test.ns)), all.Submodules(), like)
		if err != nil || n != 1 || len(some) != len(test.want) {
			t.Errorf("%s: %v, %d entries, %v; want %v", test.plan, some, n, err, test.want)
			continue
		}
		for i, v := range some {
			if !strings.HasPrefix(v.String(), test.want[i]+": allreduce of 1MiB on i=8,s=2: ") {
				t.Errorf("%s: %v; want %s", test.plan, v, test.want[i])
			}
		}
	}
}

// Measuring again replaces what was disturbed, on the machine that there is only.
func TestRemeasure(t *testing.T) {
	made := tabletest.Parse(t, fmt.Sprintf(suspicious, 50, 60, 190, 205))
	on := tasktest.Topology(t, "2x2")
	like := func(coll tasks.Collective, bytes int64) (tasks.Request, error) {
		return tasktest.Requests(coll.String(), bytes)[0], nil
	}
	f := &fakeMeter{on: on}
	n, err := tune.Remeasure(t.Context(), f, made, on, "", stats.Stop{}, like)
	if err != nil || n != 4 || f.collectives != 5 {
		t.Errorf("%d entries, %d measurements, %v; want 4 and 5", n, f.collectives, err)
	}
	if all := tune.Violations(made); len(all) > 0 {
		t.Errorf("still %v", all)
	}
	three := tasktest.Topology(t, "3x2")
	if n, err := tune.Remeasure(t.Context(), f, tabletest.Parse(t, fmt.Sprintf(suspicious, 50, 60, 190, 205)), three, "", stats.Stop{}, like); n != 0 || err != nil {
		t.Errorf("on another machine %d entries were measured, %v", n, err)
	}
}

// Consider lists every plan of the space once, with what is known of it.
func TestConsider(t *testing.T) {
	on := tasktest.Topology(t, "2x2")
	r := tasktest.Requests("allreduce", 5000)[0]
	e, err := tune.Consider(r, on, &planner.Options{Table: recordedFile}, tune.Space{})
	if err != nil {
		t.Fatal(err)
	}
	chosen, known, rejected := 0, 0, 0
	seen := map[string]bool{}
	for i, c := range e.Candidates {
		if seen[c.Plan] {
			t.Errorf("%s is listed twice", c.Plan)
		}
		seen[c.Plan] = true
		chosen += b2i(c.Chosen)
		known += b2i(c.NS > 0)
		rejected += b2i(c.Rejected != "")
		if i < known && c.Rejected != "" {
			t.Errorf("%s is rejected and has a time", c.Plan)
		}
	}
	if chosen != 1 || !e.Candidates[0].Chosen || known < 3 || known+rejected == len(e.Candidates) {
		t.Errorf("%d candidates, %d chosen, %d with times, %d rejected", len(e.Candidates), chosen, known, rejected)
	}
	if text := e.String(); !strings.Contains(text, "\n  * ") || !strings.Contains(text, "entry: allreduce of 4KiB on i=2,s=2") || !strings.Contains(text, "runner-up: ") {
		t.Errorf("text:\n%.2000s", text)
	}
}

package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/submodules/submoduletest"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// recordedFile was tuned on goroutine ranks over emulated links, as it says.
const recordedFile = "../testdata/tables/recorded.json"

func recorded(t testing.TB) *table.Table {
	t.Helper()
	made, err := choose.LoadTable(recordedFile, all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// For any request on any machine, a table leads to a plan that compiles on all ranks.
func TestTableIsTotal(t *testing.T) {
	made := recorded(t)
	byTable, by := 0, 0
	check := func(rt *rapid.T) {
		c := casegen.Options{MaxRanks: 16, Registry: all.Submodules()}.Draw(source{rt})
		p, ok, err := planner.DecideBy(made, c.Request, c.Topology)
		if err != nil {
			rt.Fatalf("%v: %v", c, err)
		}
		submoduletest.Compile(rt, c.Request, c.Topology, p, all.Submodules())
		if by++; ok {
			byTable++
		}
	}
	for range 10 { // the table decides one case of six, and with -short a round has twenty
		rapid.Check(t, check)
	}
	t.Logf("the table decided %d of %d", byTable, by)
	if byTable == 0 || byTable == by {
		t.Errorf("the table decided %d of %d: want some, and some left to the rule", byTable, by)
	}
}

// Between measured points times lie between theirs, for sizes and machines that
// are no powers of two as well.
func TestInterpolation(t *testing.T) {
	const plan = "shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots"
	entry := func(nodes int, bytes, ns string) string {
		return `{"collective":"bcast","levels":{"i":` + string(rune('0'+nodes)) + `,"s":2},"layout":"block","ranks":"processes","bytes":` + bytes + `,"candidates":[{"plan":"` + plan + `","ns":` + ns + `,"from":"measured"}]}`
	}
	made := tabletest.Parse(t, `{"tierflow_table":2,"provenance":{"method":"test","date":"","seconds":0,"configurations":0,"planned":0},"entries":[
		`+entry(2, "1000", "1000")+","+entry(2, "3000", "5000")+","+entry(8, "1000", "4000")+","+entry(8, "3000", "8000")+`]}`)
	p := tasktest.Plan(t, plan)
	for _, test := range []struct {
		topo  string
		bytes int64
		want  float64
	}{
		{"2x2", 1000, 1000},
		{"2x2", 1500, 2000},
		{"2x2", 8, 1000},     // latency stays
		{"2x2", 6000, 10000}, // bandwidth too
		{"4x2", 1000, 2000},  // a third of the way from 2 to 8
		{"5x2", 2000, 4500},
		{"8x2", 3000, 8000},
		{"16x2", 3000, 8000},
		{"3x4", 1000, 1833.333}, // nearer to 2 than to 8, both of other nodes
		{"64x2", 1000, 0},       // too far
		{"2x2", 100000, 0},      // too much
		{"6", 1000, 0},          // no such levels
		{"2x2x2", 1000, 0},
	} {
		on := tasktest.Topology(t, test.topo)
		r := tasks.Request{Coll: tasks.Bcast, Count: test.bytes, Type: tasks.Uint8}
		if got := planner.EstimateBy(made, r, on, p); got < test.want*0.999 || got > test.want*1.001 {
			t.Errorf("%d bytes on %s: %v ns, want %v", test.bytes, test.topo, got, test.want)
		}
		if _, byTable, err := planner.DecideBy(made, r, on); err != nil || byTable != (test.want > 0) {
			t.Errorf("%d bytes on %s: decided by the table: %v, %v", test.bytes, test.topo, byTable, err)
		}
	}
}

// What goes in rounds of all nodes is interpolated by these.
func TestInterpolationByRounds(t *testing.T) {
	entry := func(nodes, ns int) string {
		var plans []string
		for _, p := range []string{
			"shape=han,fs=all,w=1,ib=adapt/binomial,sb=sm/slots", "shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots",
			"shape=flat,fs=2KiB,w=8,ib=circulant/blocks", "shape=sag,fs=all,w=1,iag=nbc/bruck,is=nbc/binomial,sb=sm/slots",
		} {
			plans = append(plans, fmt.Sprintf(`{"plan":%q,"ns":%d,"from":"measured"}`, p, ns))
		}
		return fmt.Sprintf(`{"collective":"bcast","levels":{"i":%d,"s":2},"layout":"block","ranks":"processes","bytes":4096,"candidates":[%s]}`, nodes, strings.Join(plans, ","))
	}
	made := tabletest.Of(t, entry(4, 2000), entry(8, 3000))
	for topo, want := range map[string][4]float64{ // of the plans above
		"4x2": {2000, 2000, 2000, 2000},
		"5x2": {3000, 2250, 3000, 2250},
		"6x2": {3000, 2500, 3000, 2500},
		"3x2": {2000, 2000, 2000, 2000},
		"9x2": {3000, 3000, 3000, 3000},
	} {
		on := tasktest.Topology(t, topo)
		a := made.Find(tasks.Request{Coll: tasks.Bcast, Count: 1024, Type: tasks.Float32}, on, "", all.Submodules())
		got := [4]float64{}
		for _, e := range a.Estimates {
			text := e.Plan.String()
			switch {
			case strings.Contains(text, "ib=adapt/binomial"):
				got[0] = e.NS
			case strings.Contains(text, "chain"):
				got[1] = e.NS
			case strings.Contains(text, "circulant"):
				got[2] = e.NS
			default:
				got[3] = e.NS
			}
		}
		if got != want {
			t.Errorf("%s: %v ns, want %v", topo, got, want)
		}
	}
}

// A plan that the request doesn't allow is passed over, and Explain says so.
func TestTableUnfit(t *testing.T) {
	made := `{"tierflow_table":2,"provenance":{"method":"test","date":"","seconds":0,"configurations":0,"planned":0},"entries":[
		{"collective":"allreduce","levels":{"i":3,"s":2},"layout":"block","ranks":"processes","type":"f32","op":"built-in","bytes":4096,"candidates":[
		{"plan":"shape=flat,fs=all,w=1,ib=adapt/binomial,ir=nbc/ring","ns":10,"from":"measured"},
		{"plan":"shape=flat,fs=all,w=1,ib=adapt/binomial,ir=adapt/binomial","ns":20,"from":"measured"}]}]}`
	on := tasktest.Topology(t, "3x2")
	o := &planner.Options{Table: "table", Files: inMemory("table", []byte(made))}
	text, err := planner.Explain(tasks.Request{Coll: tasks.Allreduce, Count: 1024, Type: tasks.Float32, Op: tasks.Sum}, on, o)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, "Explain", text, "plan: shape=flat,fs=all,w=1,ib=adapt/binomial,ir=adapt/binomial\n", "faster but unfit: shape=flat,fs=all,w=1,ib=adapt/binomial,ir=nbc/ring", "predicted: 0.0 µs, measured")
	text, err = planner.Explain(tasks.Request{Coll: tasks.Bcast, Count: 1024, Type: tasks.Float32}, on, o)
	if err != nil || !strings.Contains(text, "leaves it open: it has no entry for bcast") {
		t.Errorf("%v, Explain of what the table doesn't have:\n%s", err, text)
	}
}

// What was measured on another layout isn't called measured, and a plan that ignores nodes
// isn't taken from there.
func TestExplainElsewhere(t *testing.T) {
	const data = `{"tierflow_table":2,"provenance":{},"entries":[
		{"collective":"bcast","levels":{"i":4,"s":2},"layout":"block","ranks":"processes","bytes":4096,"candidates":[
		{"plan":"shape=flat,fs=all,w=1,ib=adapt/chain","ns":100000,"from":"measured"},
		{"plan":"shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots","ns":200000,"from":"measured"}]}]}`
	r := tasks.Request{Coll: tasks.Bcast, Count: 1024, Type: tasks.Float32}
	for spec, want := range map[string][]string{
		"4x2":             {"plan: shape=flat", "on i=4,s=2, weight 1.00\n", "predicted: 100.0 µs, measured\n"},
		"4x2/rr":          {"plan: shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots\n", "on i=4,s=2, weight 1.00, from elsewhere: block, here dealt\n", "predicted: 200.0 µs, elsewhere\n"},
		"a:2,b:2,c:2,d:1": {"plan: shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots\n", "from elsewhere: block, here unequal-", "predicted: 200.0 µs, elsewhere\n"},
	} {
		on := tasktest.Topology(t, spec)
		text, err := planner.Explain(r, on, &planner.Options{Table: "table", Files: inMemory("table", []byte(data))})
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, spec, text, want...)
		if spec != "4x2" && strings.Contains(text, "measured") {
			t.Errorf("%s: measured here:\n%s", spec, text)
		}
	}
}

// smallTable has a bit of everything: the fuzzer starts with it, and is fast on small files only.
const smallTable = `{"tierflow_table":2,"provenance":{"method":"x"},"entries":[
{"collective":"bcast","levels":{"i":2,"s":2},"layout":"block","ranks":"processes","bytes":8,"candidates":[{"plan":"shape=flat,fs=all,w=1,ib=adapt/chain","ns":5,"low_ns":4,"high_ns":6,"from":"measured"}]}],
"measured":[{"collective":"allreduce","levels":{"i":2},"layout":"block","ranks":"processes","type":"f32","op":"built-in","bytes":8,"plan":"shape=flat,fs=all,w=1,ib=nbc/knomial,ir=nbc/knomial","ns":5}],
"costs":{"provenance":{},"costs":[],"pipelines":[]}}`

func TestSmallTable(t *testing.T) {
	made := tabletest.Parse(t, smallTable)
	if len(made.Entries) != 1 || len(made.Measured) != 1 {
		t.Errorf("%d entries and %d measurements, want one each", len(made.Entries), len(made.Measured))
	}
}

// What is read is written back the same, and decides whatever is asked.
func FuzzParseTable(f *testing.F) {
	f.Add([]byte(smallTable))
	f.Add([]byte(`{"tierflow_table":2,"provenance":{},"entries":[]}`))
	on := tasktest.Topology(f, "3x2")
	f.Fuzz(func(t *testing.T, data []byte) {
		made, err := table.Parse("fuzz.json", data, all.Submodules())
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz.json") {
				t.Errorf("%v: an error does not say where", err)
			}
			return
		}
		tune.Violations(made)
		tabletest.RoundTrip(t, made)
		for _, coll := range tasks.Requestable() {
			if !slices.ContainsFunc(made.Entries, func(e table.Entry) bool { return e.Collective == coll.String() }) {
				continue // the table says nothing of it
			}
			r := tasktest.Requests(coll.String(), 4096)[0]
			p, _, err := planner.DecideBy(made, r, on)
			if err != nil {
				t.Fatal(err)
			}
			submoduletest.Compile(t, r, on, p, all.Submodules())
		}
	})
}

// A program that asks for measured times gets no simulated ones.
func TestMeasuredTable(t *testing.T) {
	const data = `{"tierflow_table":2,"provenance":{%s},"entries":[]}`
	for provenance, want := range map[string]string{
		"": "", `"simulated":"big.json"`: "table: its times were simulated on big.json; Options.MeasuredTable allows measured ones only",
	} {
		comms, err := planner.Local("2", &planner.Options{MeasuredTable: true, Table: "table", Files: inMemory("table", fmt.Appendf(nil, data, provenance))})
		for _, c := range comms {
			c.Close()
		}
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("{%s}: %v; want %q", provenance, err, want)
		}
	}
	comms, err := planner.Local("2", &planner.Options{MeasuredTable: true})
	if err != nil {
		t.Errorf("without a table: %v", err)
	}
	for _, c := range comms {
		c.Close()
	}
}

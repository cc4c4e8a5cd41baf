package planner_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// recordedFile was tuned on goroutine ranks over emulated links, as it says.
const recordedFile = "../testdata/tables/recorded.json"

func recorded(t testing.TB) *planner.Table {
	t.Helper()
	table, err := planner.LoadTable(recordedFile, all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// compileAll compiles a plan for all ranks.
func compileAll(t failer, r tasks.Request, on *levels.Topology, p tasks.Plan) {
	t.Helper()
	cut, err := tasks.CutRequest(r, on, p)
	if err != nil {
		t.Fatalf("%v on %v with %v: %v", r, on, p, err)
	}
	for rank := range levels.Rank(on.Size()) {
		if _, err := submodules.CompileFor(cut.Parts()[0], cut.On, p, rank, all.Submodules()); err != nil {
			t.Fatalf("%v on %v with %v, rank %d: %v", r, on, p, rank, err)
		}
	}
}

// Whatever is asked for, on whatever machine, a table leads to a plan that
// compiles on all ranks.
func TestTableIsTotal(t *testing.T) {
	table := recorded(t)
	byTable, by := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		c := casegen.Options{MaxRanks: 16, Registry: all.Submodules()}.Draw(source{rt})
		p, ok, err := table.Decide(c.Request, c.Topology)
		if err != nil {
			rt.Fatalf("%v: %v", c, err)
		}
		compileAll(rt, c.Request, c.Topology, p)
		by++
		byTable += b2i(ok)
	})
	if byTable == 0 || byTable == by {
		t.Errorf("the table decided %d of %d: want some, and some left to the rule", byTable, by)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Between measured points times lie between theirs, for sizes and machines that
// are no powers of two as well.
func TestInterpolation(t *testing.T) {
	const plan = "shape=han,fs=all,w=1,ib=adapt/binomial,sb=sm/slots"
	entry := func(nodes int, bytes, ns string) string {
		return `{"collective":"bcast","levels":{"i":` + string(rune('0'+nodes)) + `,"s":2},"bytes":` + bytes + `,"candidates":[{"plan":"` + plan + `","ns":` + ns + `,"from":"measured"}]}`
	}
	table := parse(t, `{"tierflow_table":1,"provenance":{"method":"test","date":"","seconds":0,"configurations":0,"planned":0},"entries":[
		`+entry(2, "1000", "1000")+","+entry(2, "3000", "5000")+","+entry(8, "1000", "4000")+","+entry(8, "3000", "8000")+`]}`)
	p, err := tasks.ParsePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
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
		on, err := levels.Parse(test.topo)
		if err != nil {
			t.Fatal(err)
		}
		r := tasks.Request{Coll: tasks.Bcast, Count: test.bytes, Type: tasks.Uint8}
		if got := table.Estimate(r, on, p); got < test.want*0.999 || got > test.want*1.001 {
			t.Errorf("%d bytes on %s: %v ns, want %v", test.bytes, test.topo, got, test.want)
		}
		if _, byTable, err := table.Decide(r, on); err != nil || byTable != (test.want > 0) {
			t.Errorf("%d bytes on %s: decided by the table: %v, %v", test.bytes, test.topo, byTable, err)
		}
	}
}

func parse(t testing.TB, text string) *planner.Table {
	t.Helper()
	table, err := planner.ParseTable("test.json", []byte(text), all.Submodules())
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// A plan that the request doesn't allow is passed over, and Explain says so.
func TestTableUnfit(t *testing.T) {
	table := `{"tierflow_table":1,"provenance":{"method":"test","date":"","seconds":0,"configurations":0,"planned":0},"entries":[
		{"collective":"allreduce","levels":{"i":3,"s":2},"bytes":4096,"candidates":[
		{"plan":"shape=flat,fs=all,w=1,ib=adapt/binomial,ir=nbc/ring","ns":10,"from":"measured"},
		{"plan":"shape=flat,fs=all,w=1,ib=adapt/binomial,ir=adapt/binomial","ns":20,"from":"measured"}]}]}`
	on, err := levels.Parse("3x2")
	if err != nil {
		t.Fatal(err)
	}
	o := &planner.Options{TableData: []byte(table)}
	text, err := planner.Explain(tasks.Request{Coll: tasks.Allreduce, Count: 1024, Type: tasks.Float32, Op: tasks.Sum}, on, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"plan: shape=flat,fs=all,w=1,ib=adapt/binomial,ir=adapt/binomial\n", "faster but unfit: shape=flat,fs=all,w=1,ib=adapt/binomial,ir=nbc/ring", "predicted: 0.0 µs, measured"} {
		if !strings.Contains(text, want) {
			t.Errorf("Explain has no %q:\n%s", want, text)
		}
	}
	text, err = planner.Explain(tasks.Request{Coll: tasks.Bcast, Count: 1024, Type: tasks.Float32}, on, o)
	if err != nil || !strings.Contains(text, "built-in rule decides: it has no entry for bcast") {
		t.Errorf("%v, Explain of what the table doesn't have:\n%s", err, text)
	}
}

// Errors say where in the file they are, all at once.
func TestTableErrors(t *testing.T) {
	const head = "{\n\"tierflow_table\": 1,\n\"provenance\": {\"method\":\"test\"},\n"
	entry := func(inside string) string { return head + "\"entries\": [\n{" + inside + "}\n]}" }
	const whole = `"collective":"bcast","levels":{"i":2},"bytes":8,`
	const plan = `"plan":"shape=flat,fs=all,w=1,ib=adapt/chain"`
	for _, test := range []struct{ text, want string }{
		{"", "test.json:1: unexpected end of JSON input"},
		{"[]", "test.json:1: a decision table must be an object"},
		{"{\n\"entries\": [\n}", "test.json:3: invalid character"},
		{"{}", "test.json:1: key \"tierflow_table\" is missing; a decision table needs tierflow_table, provenance, entries"},
		{"{\n\"tierflow_table\": 2}", "test.json:2: tierflow_table 2; this program reads version 1"},
		{"{\n\"tierflow_table\": \"x\"}", "test.json:2: the version is a string"},
		{head + "\"extra\": 1}", "test.json:4: unknown key \"extra\" in a decision table; known are tierflow_table, provenance, entries, measured, costs"},
		{head + "\"entries\": 3}", "test.json:4: \"entries\" must be an array"},
		{head + "\"provenance\": {}}", "test.json:4: key \"provenance\" is given twice"},
		{entry("\n\"colective\": 1"), "test.json:6: an entry: unknown key \"colective\""},
		{entry("\n\"bytes\": \"8\""), "test.json:6: an entry: \"bytes\" is a string"},
		{entry(whole), "test.json:5"},
		{entry(`"collective":"bast","levels":{"i":2},"bytes":8,"candidates":[]`), "unknown collective \"bast\"; known are bcast"},
		{entry(`"collective":"bcast","levels":{},"bytes":8,"candidates":[]`), "no levels"},
		{entry(`"collective":"bcast","levels":{"node":0},"bytes":-8,"candidates":[]`), "\"node\" has 0 ranks"},
		{entry(whole + `"candidates":[]`), "test.json:5: entry for bcast i=2 8 has no candidates"},
		{entry(whole + `"candidates":[{"plan":"fs=all","ns":1,"from":"measured"}]`), "lacks a shape"},
		{entry(whole + `"candidates":[{"plan":"shape=flat,fs=all,w=1,ib=adapt/nothing","ns":1,"from":"measured"}]`), "unknown algorithm \"nothing\""},
		{entry(whole + `"candidates":[{` + plan + `,"ns":0,"from":"measured"}]`), "a time is above 0"},
		{entry(whole + `"candidates":[{` + plan + `,"ns":5,"low_ns":6,"high_ns":7,"from":"measured"}]`), "a time lies in its interval"},
		{entry(whole + `"candidates":[{` + plan + `,"ns":5,"from":"guessed"}]`), "from \"guessed\"; known are measured, predicted"},
		{
			entry(whole + `"candidates":[{` + plan + `,"ns":5,"from":"measured"}]},` + "\n{" + whole + `"candidates":[{` + plan + `,"ns":5,"from":"measured"}]`),
			"test.json:6: a second entry for bcast i=2 8; the first is on line 5",
		},
		{head + "\"entries\": [], \"measured\": [\n{\"ns\": -1}]}", "test.json:5: plan \"\": ns -1"},
		{head + "\"entries\": [],\n\"costs\": {\"x\": 1}}", "costs from line 5"},
	} {
		_, err := planner.ParseTable("test.json", []byte(test.text), all.Submodules())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\ngives %v, want %q", test.text, err, test.want)
		}
	}
	many := entry(strings.Repeat("},\n{", 30))
	if _, err := planner.ParseTable("test.json", []byte(many), all.Submodules()); err == nil || strings.Count(err.Error(), "\n") > 11 || !strings.Contains(err.Error(), "and 113 more") {
		t.Errorf("thirty empty entries give %v", err)
	}
}

// What is read is written back the same, and decides whatever is asked.
func FuzzParseTable(f *testing.F) {
	data, err := os.ReadFile(recordedFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"tierflow_table":1,"provenance":{},"entries":[{"collective":"bcast","levels":{"i":2,"s":2},"bytes":8,"candidates":[{"plan":"shape=flat,fs=all,w=1,ib=adapt/chain","ns":5,"from":"predicted"}]}]}`))
	on, err := levels.Parse("3x2")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := planner.ParseTable("fuzz.json", data, all.Submodules())
		if err != nil {
			if !strings.HasPrefix(err.Error(), "fuzz.json") {
				t.Errorf("%v: an error does not say where", err)
			}
			return
		}
		table.Violations()
		first, err := table.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := planner.ParseTable("fuzz.json", first, all.Submodules())
		if err != nil {
			t.Fatalf("%v in what was written:\n%s", err, first)
		}
		if second, err := again.Encode(); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%v; written twice:\n%s\n%s", err, first, second)
		}
		for _, coll := range tasks.Requestable() {
			r := requests(coll.String(), 4096)[0]
			p, _, err := table.Decide(r, on)
			if err != nil {
				t.Fatal(err)
			}
			compileAll(t, r, on, p)
		}
	})
}

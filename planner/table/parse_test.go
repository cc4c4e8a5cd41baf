package table_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/submodules/all"
)

// Errors say where in the file they are, all at once.
func TestTableErrors(t *testing.T) {
	const head = "{\n\"tierflow_table\": 2,\n\"provenance\": {\"method\":\"test\"},\n"
	entry := func(inside string) string { return head + "\"entries\": [\n{" + inside + "}\n]}" }
	const whole = `"collective":"bcast","levels":{"i":2},"layout":"block","ranks":"processes","bytes":8,`
	const plan = `"plan":"shape=flat,fs=all,w=1,ib=adapt/chain"`
	for _, test := range []struct{ text, want string }{
		{"", "test.json:1: unexpected end of JSON input"},
		{"[]", "test.json:1: a decision table must be an object"},
		{"{\n\"entries\": [\n}", "test.json:3: invalid character"},
		{"{}", "test.json:1: key \"tierflow_table\" is missing; a decision table needs tierflow_table, provenance, entries"},
		{"{\n\"tierflow_table\": 3}", "test.json:2: tierflow_table 3; this program reads version 2"},
		{"{\n\"tierflow_table\": 1}", "test.json:2: tierflow_table 1; this program reads version 2, whose entries say on which layout, ranks and links they were measured: tune again"},
		{"{\n\"tierflow_table\": \"x\"}", "test.json:2: the version is a string"},
		{head + "\"extra\": 1}", "test.json:4: unknown key \"extra\" in a decision table; known are tierflow_table, provenance, entries, measured, costs"},
		{head + "\"entries\": 3}", "test.json:4: \"entries\" must be an array"},
		{head + "\"provenance\": {}}", "test.json:4: key \"provenance\" is given twice"},
		{"{\n\"tierflow_table\": 2,\n\"provenance\": {\"regime\":\"twice\"}}", "test.json:3: regime \"twice\" is not known; known are single, back-to-back"},
		{"{\n\"tierflow_table\": 2,\n\"provenance\": {\"regime\":\"\"}}", "test.json:3: regime \"\" is not known"},
		{entry("\n\"colective\": 1"), "test.json:6: an entry: unknown key \"colective\""},
		{entry("\n\"bytes\": \"8\""), "test.json:6: an entry: \"bytes\" is a string"},
		{entry(whole), "test.json:5"},
		{entry(`"collective":"bast","levels":{"i":2},"bytes":8,"candidates":[]`), "unknown collective \"bast\"; known are bcast"},
		{entry(`"collective":"bcast","levels":{},"bytes":8,"candidates":[]`), "no levels"},
		{entry(`"collective":"bcast","levels":{"node":0},"bytes":-8,"candidates":[]`), "\"node\" has 0 ranks"},
		{entry(whole + `"candidates":[]`), "test.json:5: entry for bcast i=2 8 on block, processes has no candidates"},
		{entry(whole + `"candidates":[{"plan":"fs=all","ns":1,"from":"measured"}]`), "lacks a shape"},
		{entry(whole + `"candidates":[{"plan":"shape=flat,fs=all,w=1,ib=adapt/nothing","ns":1,"from":"measured"}]`), "unknown algorithm \"nothing\""},
		{entry(whole + `"candidates":[{` + plan + `,"ns":0,"from":"measured"}]`), "a time is above 0"},
		{entry(whole + `"candidates":[{` + plan + `,"ns":5,"low_ns":6,"high_ns":7,"from":"measured"}]`), "a time lies in its interval"},
		{entry(whole + `"candidates":[{` + plan + `,"ns":5,"from":"guessed"}]`), "from \"guessed\"; known are measured, predicted, simulated"},
		{entry(whole + `"candidates":[{` + plan + `,"ns":5,"from":"simulated"}]`), "test.json: entry for bcast i=2 8 on block, processes: candidate \"shape=flat,fs=all,w=1,ib=adapt/chain\" is from \"simulated\", but the provenance says that times were measured"},
		{
			entry(whole + `"candidates":[{` + plan + `,"ns":5,"from":"measured"}]},` + "\n{" + whole + `"candidates":[{` + plan + `,"ns":5,"from":"measured"}]`),
			"test.json:6: a second entry for bcast i=2 8 on block, processes; the first is on line 5",
		},
		{head + "\"entries\": [], \"measured\": [\n{\"ns\": -1}]}", "test.json:5: plan \"\": ns -1"},
		{head + "\"entries\": [],\n\"costs\": {\"x\": 1}}", "costs from line 5"},
	} {
		_, err := table.Parse("test.json", []byte(test.text), all.Submodules())
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\ngives %v, want %q", test.text, err, test.want)
		}
	}
	many := entry(strings.Repeat("},\n{", 30))
	if _, err := table.Parse("test.json", []byte(many), all.Submodules()); err == nil || strings.Count(err.Error(), "\n") > 11 || !strings.Contains(err.Error(), "and 113 more") {
		t.Errorf("thirty empty entries give %v", err)
	}
}

// A table names its regime, and keeps it when it is written again. One that names none is
// older, and of single calls.
func TestTableRegime(t *testing.T) {
	for text, want := range map[string]costs.Regime{
		``:                         costs.Single,
		`,"regime":"single"`:       costs.Single,
		`,"regime":"back-to-back"`: costs.BackToBack,
	} {
		data := []byte(`{"tierflow_table":2,"provenance":{"method":"test"` + text + `},"entries":[]}`)
		for range 2 {
			made, err := table.Parse("test.json", data, all.Submodules())
			if err != nil || made.Regime() != want {
				t.Fatalf("%s: %v, %v; want %v", data, made, err, want)
			}
			if data, err = made.Encode(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

package table_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Layouts of machines of other sizes are the same, if these are regular.
func TestLayoutOf(t *testing.T) {
	for spec, want := range map[string]string{
		"1": table.Block, "4": table.Block, "4x2": table.Block, "8x3": table.Block, "a:2,b:2": table.Block, "2x2x3": table.Block,
		"4x2/rr": table.Dealt, "3x3/rr": table.Dealt, "4x1/rr": table.Block,
		"a:2,b:2,c:2,d:1": "unequal-", "a:1,b:2": "unequal-", "a:1,b:2/rr": "unequal-",
		"2x2x2/rr": "mixed-",
	} {
		got := table.LayoutOf(tasktest.Topology(t, spec))
		if got != want && (!strings.HasSuffix(want, "-") || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
	if a, b := table.LayoutOf(tasktest.Topology(t, "a:1,b:2")), table.LayoutOf(tasktest.Topology(t, "a:2,b:1")); a == b {
		t.Errorf("nodes of 1 and 2, and of 2 and 1 ranks: both %s", a)
	}
}

// placed is a table of one point, measured in one place.
func placed(t *testing.T, coll, place string) *table.Table {
	t.Helper()
	kinds := map[string]string{"bcast": "ib=adapt/chain", "allreduce": "ib=adapt/chain,ir=adapt/chain"}[coll]
	inside := map[string]string{"bcast": ",sb=sm/slots", "allreduce": ",sb=sm/slots,sr=sm/slots"}[coll]
	return tabletest.Of(t, `{"collective":"`+coll+`","levels":{"i":4,"s":2},`+place+`,"bytes":4096,"candidates":[
			{"plan":"shape=flat,fs=all,w=1,`+kinds+`","ns":100000,"from":"measured"},
			{"plan":"shape=han,fs=all,w=1,`+kinds+inside+`","ns":200000,"from":"measured"}]}`)
}

// What was measured in another place is from elsewhere, and a plan that ignores nodes
// says nothing about another layout.
func TestElsewhere(t *testing.T) {
	const block, links = `"layout":"block","ranks":"processes"`, "10gbit"
	bcast := tasks.Request{Coll: tasks.Bcast, Count: 1024, Type: tasks.Float32}
	sum := tasks.Request{Coll: tasks.Allreduce, Count: 1024, Type: tasks.Float32, Op: tasks.Sum}
	wide, own := sum, sum
	wide.Type, wide.Count = tasks.Float64, 512
	own.Op = tasks.UserOp("own", true, func(a, b float32) float32 { return a + b })
	one := tasktest.Topology(t, "4x2").OneProcess()
	for _, test := range []struct {
		name, place string
		r           tasks.Request
		on          *levels.Topology
		flat        bool   // plans that ignore nodes are kept
		why         string // elsewhere; empty: here
	}{
		{"here", block, bcast, tasktest.Topology(t, "4x2"), true, ""},
		{"type of what isn't reduced", block, tasks.Request{Coll: tasks.Bcast, Count: 4096, Type: tasks.Uint8}, tasktest.Topology(t, "4x2"), true, ""},
		{"dealt", block, bcast, tasktest.Topology(t, "4x2/rr"), false, "block, here dealt"},
		{"unequal", block, bcast, tasktest.Topology(t, "a:2,b:2,c:2,d:1"), false, "block, here unequal-"},
		{"block", `"layout":"dealt","ranks":"processes"`, bcast, tasktest.Topology(t, "4x2"), false, "dealt, here block"},
		{"goroutines", block, bcast, one, true, "processes, here goroutines"},
		{"same reduction", block + `,"type":"f32","op":"built-in"`, sum, tasktest.Topology(t, "4x2"), true, ""},
		{"another type", block + `,"type":"f32","op":"built-in"`, wide, tasktest.Topology(t, "4x2"), true, "f32, here f64"},
		{"user operation", block + `,"type":"f32","op":"built-in"`, own, tasktest.Topology(t, "4x2"), true, "built-in, here user"},
		{"same links", block + `,"links":"10gbit"`, bcast, tasktest.Topology(t, "4x2"), true, ""},
		{"other links", block + `,"links":"1gbit"`, bcast, tasktest.Topology(t, "4x2"), true, "1gbit, here 10gbit"},
	} {
		a := placed(t, test.r.Coll.String(), test.place).Find(test.r, test.on, links, all.Submodules())
		if test.why == "" && a.Elsewhere != "" || !strings.HasPrefix(a.Elsewhere, test.why) {
			t.Errorf("%s: elsewhere is %q, want %q", test.name, a.Elsewhere, test.why)
		}
		from, best := table.FromMeasured, tasks.Flat
		if test.why != "" {
			from = table.FromElsewhere
		}
		if !test.flat {
			best = tasks.Han
		}
		if len(a.Estimates) == 0 || a.Estimates[0].From != from || a.Estimates[0].Plan.Shape != best {
			t.Errorf("%s: %+v (%s), want first a plan of shape %v, %s", test.name, a.Estimates, a.Why, best, from)
		}
	}
}

// Of several places the one that the request is of answers.
func TestFindsItsPlace(t *testing.T) {
	made := placed(t, "bcast", `"layout":"block","ranks":"processes"`)
	dealt := placed(t, "bcast", `"layout":"dealt","ranks":"processes"`)
	dealt.Entries[0].Candidates[0].NS = 300000
	made.Replace(dealt.Entries[0])
	made.Sort()
	if len(made.Entries) != 2 {
		t.Fatalf("%d entries for two places", len(made.Entries))
	}
	r := tasks.Request{Coll: tasks.Bcast, Count: 1024, Type: tasks.Float32}
	for spec, want := range map[string]tasks.Shape{"4x2": tasks.Flat, "4x2/rr": tasks.Han} {
		a := made.Find(r, tasktest.Topology(t, spec), "", all.Submodules())
		if a.Elsewhere != "" || len(a.Estimates) != 2 || a.Estimates[0].Plan.Shape != want || a.Estimates[0].From != table.FromMeasured {
			t.Errorf("%s: %+v, elsewhere %q", spec, a.Estimates, a.Elsewhere)
		}
	}
}

// A place that can't be is refused, with what is allowed.
func TestPlaceErrors(t *testing.T) {
	for place, want := range map[string]string{
		`"layout":"round","ranks":"processes"`: `test.json:2: layout "round"; known are block, dealt`,
		`"layout":"block"`:                     `ranks ""; known are processes, goroutines`,
		`"layout":"block","ranks":"processes","type":"f32","op":"built-in"`: `of bcast, which reduces nothing`,
	} {
		_, err := table.Parse("test.json", []byte(`{"tierflow_table":2,"provenance":{},"entries":[
			{"collective":"bcast","levels":{"i":4},`+place+`,"bytes":8,"candidates":[{"plan":"shape=flat,fs=all,w=1,ib=adapt/chain","ns":1,"from":"measured"}]}]}`), all.Submodules())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", place, err, want)
		}
	}
}

// What works on powers of two is not interpolated from these alone to other numbers of ranks.
func TestFoldingIsNotInterpolated(t *testing.T) {
	entry := func(levels string) string {
		return `{"collective":"bcast","levels":{` + levels + `},"layout":"block","ranks":"processes","bytes":4096,"candidates":[
			{"plan":"shape=flat,fs=all,w=1,ib=adapt/chain","ns":200,"from":"measured"},
			{"plan":"shape=sag,fs=all,w=1,iag=nbc/recdoubling,is=nbc/binomial,sb=sm/slots","ns":100,"from":"measured"}]}`
	}
	for _, test := range []struct {
		measured []string
		on       string
		want     int // plans
	}{
		{[]string{`"i":4,"s":2`, `"i":8,"s":2`}, "6x2", 1},
		{[]string{`"i":4,"s":2`, `"i":6,"s":2`}, "5x2", 2},
		{[]string{`"i":4,"s":2`, `"i":16,"s":2`}, "8x2", 2},
		{[]string{`"i":4,"s":2`, `"i":4,"s":4`}, "4x3", 2}, // nodes are a power of two
	} {
		var entries []string
		for _, m := range test.measured {
			entries = append(entries, entry(m))
		}
		made := tabletest.Of(t, entries...)
		made.Sort()
		a := made.Find(tasks.Request{Coll: tasks.Bcast, Count: 1024, Type: tasks.Float32}, tasktest.Topology(t, test.on), "", all.Submodules())
		if len(a.Estimates) != test.want {
			t.Errorf("%s by %s: %+v (%s), want %d plans", test.on, test.measured, a.Estimates, a.Why, test.want)
		}
	}
}

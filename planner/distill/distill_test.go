package distill_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner/distill"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/tasks"
)

// makeRules makes rules of a table and reads them, without a finding.
func makeRules(t *testing.T, of *table.Table, bounds distill.Bounds) (*distill.Made, *rules.Base) {
	t.Helper()
	made, err := distill.Rules(of, bounds)
	if err != nil {
		t.Fatal(err)
	}
	base, err := rules.Parse("made", made.Text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, made.Text)
	}
	for _, f := range base.Check() {
		t.Errorf("made:%d: %s in\n%s", f.Line, f.Message, made.Text)
	}
	return made, base
}

// Rules of a recorded table decide as the trees they are made of, within the bounds.
func TestRecorded(t *testing.T) {
	data, err := os.ReadFile("../../testdata/tables/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	tab := tabletest.Parse(t, data)
	made, b := makeRules(t, tab, distill.Bounds{})
	slow, n := map[string]float64{}, map[string]int{}
	for _, e := range tab.Entries {
		coll, err := tasks.ParseCollective(e.Collective)
		if err != nil {
			t.Fatal(err)
		}
		p := &rules.Params{Coll: coll}
		for q, v := range map[rules.Param]int64{
			rules.Nodes: int64(max(e.Levels["i"], 1)), rules.PerNode: int64(max(e.Levels["s"], 1)), rules.Bytes: e.Bytes,
			rules.Balanced: 1, rules.Ordered: 1, rules.Processes: rules.Bool(e.Ranks == table.Processes),
		} {
			p.Set(q, v)
		}
		l, _ := b.Decide(p)
		if l == nil {
			t.Fatalf("%s: nothing is decided", e.Key())
		}
		best, mine := e.Candidates[0].NS, 0.0
		for _, c := range e.Candidates {
			best = min(best, c.NS)
			if table.Canonical(c.Parsed, e.Bytes).Equal(table.Canonical(b.Plan(l, p), e.Bytes)) {
				mine = c.NS
			}
		}
		if mine > 0 {
			slow[e.Collective] += mine / best
			n[e.Collective]++
		}
	}
	for _, c := range made.Collectives {
		t.Logf("%+v; found %.3f over %d", c, slow[c.Collective]/float64(n[c.Collective]), n[c.Collective])
		if c.Mean > 1.02 || c.Rules > 40 || n[c.Collective] == c.Points && slow[c.Collective]/float64(c.Points) > c.Mean+1e-9 {
			t.Errorf("%+v", c)
		}
	}
}

// Where plans change between two sizes, the one that takes less half way serves all sizes between.
// Leaves with one plan are merged.
func TestHalfway(t *testing.T) {
	entry := func(size, flat, han int) string {
		return fmt.Sprintf(`{"collective":"bcast","levels":{"i":4,"s":2},"layout":"block","ranks":"processes","bytes":%d,"candidates":[
			{"plan":"shape=flat,fs=all,w=1,ib=adapt/binomial","ns":%d,"from":"measured"},{"plan":"shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots","ns":%d,"from":"measured"}]}`, size, flat, han)
	}
	const flat, han = "shape=flat,fs=all,w=1,ib=adapt/binomial", "shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots"
	for _, c := range []struct {
		entries []string
		want    string
	}{
		// 1 and 4 KiB; half way, at 2.5 KiB, flat takes less, and then more.
		{[]string{entry(1<<10, 100, 400), entry(4<<10, 110, 100)}, "if bytes <= 4095B then " + flat + "\n\t\telse " + han},
		{[]string{entry(1<<10, 100, 110), entry(4<<10, 400, 100)}, "if bytes <= 1KiB then " + flat + "\n\t\telse " + han},
		{[]string{entry(1<<10, 100, 400), entry(4<<10, 100, 400)}, flat},
		{[]string{entry(1<<10, 100, 400), entry(4<<10, 400, 100), entry(16<<10, 400, 100), entry(64<<10, 100, 400), entry(256<<10, 100, 400)}, "if bytes <= 16KiB then (\n\t\t\tif bytes <= 1KiB then " + flat + "\n\t\t\telse " + han + "\n\t\t)\n\t\telse " + flat},
	} {
		made, _ := makeRules(t, tabletest.Of(t, c.entries...), distill.Bounds{Mean: 1, Worst: 1})
		if !strings.Contains(made.Text, c.want) || strings.Count(made.Text, "shape=") != strings.Count(c.want, "shape=") || made.Collectives[0].Rules != strings.Count(c.want, "shape=") {
			t.Errorf("%d rules\n%s\nwant\n%s", made.Collectives[0].Rules, made.Text, c.want)
		}
	}
}

// A tree finds the threshold that there is, and says nothing about other machines.
func TestThreshold(t *testing.T) {
	var entries []string
	for _, nodes := range []int{4, 8} {
		for size := 64; size <= 1<<20; size *= 4 {
			flat, han := 100, 200
			if size > 4096*nodes/4 {
				flat, han = 200, 100
			}
			entries = append(entries, fmt.Sprintf(`{"collective":"bcast","levels":{"i":%d,"s":2},"layout":"block","ranks":"processes","bytes":%d,"candidates":[
				{"plan":"shape=flat,fs=all,w=1,ib=adapt/binomial","ns":%d,"from":"measured"},{"plan":"shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots","ns":%d,"from":"measured"}]}`, nodes, size, flat, han))
		}
	}
	tab := tabletest.Of(t, entries...)
	made, _ := makeRules(t, tab, distill.Bounds{})
	c := made.Collectives[0]
	if c.Rules != 2 || c.Mean != 1 || c.Depth != 1 || c.HeldOut != 6 {
		t.Errorf("%+v\n%s", c, made.Text)
	}
	const want = `bcast:
	if nodes >= 4 and nodes <= 16 and pernode >= 2 and pernode <= 4 and bytes <= 4MiB and balanced and ordered and processes then (
		if bytes <= 4KiB then shape=flat,fs=all,w=1,ib=adapt/binomial
		else shape=han,fs=all,w=1,ib=adapt/chain,sb=sm/slots
	)
`
	if made.Text != want {
		t.Errorf("%s\nwant\n%s", made.Text, want)
	}
	if _, err := distill.Rules(tab, distill.Bounds{Mean: 0.5}); err == nil {
		t.Error("a slowdown of 0.5 was accepted")
	}
	if _, err := distill.Rules(&table.Table{}, distill.Bounds{}); err == nil {
		t.Error("rules were made of nothing")
	}
}

// Blocks that differ have rules of their own, before those of equal ones.
func TestUneven(t *testing.T) {
	entry := func(uneven int, bytes int, eager string, ns int) string {
		return fmt.Sprintf(`{"collective":"alltoall","levels":{"i":8},"layout":"block","ranks":"processes","uneven":%d,"bytes":%d,"candidates":[
			{"plan":"shape=flat,fs=all,w=1,eager=%s,ia=adapt/pairwise","ns":%d,"from":"measured"},{"plan":"shape=flat,fs=all,w=1,ia=adapt/linear","ns":100,"from":"measured"}]}`, uneven, bytes, eager, ns)
	}
	tab := tabletest.Of(t,
		entry(4, 4096, "8KiB", 80), entry(4, 65536, "8KiB", 90), entry(0, 4096, "all", 300), entry(0, 65536, "all", 300),
	)
	made, base := makeRules(t, tab, distill.Bounds{})
	for regular, want := range []string{"shape=flat,fs=all,w=1,eager=8KiB,ia=adapt/pairwise", "shape=flat,fs=all,w=1,ia=adapt/linear"} {
		p := &rules.Params{Coll: tasks.Alltoall}
		for q, v := range map[rules.Param]int64{rules.Nodes: 8, rules.PerNode: 1, rules.Bytes: 4096, rules.Balanced: 1, rules.Ordered: 1, rules.Processes: 1, rules.Regular: int64(regular)} {
			p.Set(q, v)
		}
		if l, _ := base.Decide(p); l == nil || base.Plan(l, p).String() != want {
			t.Errorf("regular %d: %v, want %s, of\n%s", regular, l, want, made.Text)
		}
	}
}

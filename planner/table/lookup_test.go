package table_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// plans are those of drawn tables.
var plans = []string{
	"shape=flat,fs=all,w=1,ib=adapt/chain", "shape=han,fs=all,w=1,ib=adapt/binomial,sb=sm/slots", "shape=han,fs=4KiB,w=4,ib=adapt/chain,sb=sm/slots",
}

// point is an entry of a bcast on i nodes of s ranks, with times by the index of plans, ns; 0: it has none.
func point(t *testing.T, i, s int, size int64, times ...float64) table.Entry {
	t.Helper()
	e := table.Entry{
		Collective: "bcast", Levels: table.Sizes{"i": i, "s": s}, Bytes: size,
		Place: table.Place{Layout: table.Block, Ranks: table.Processes},
	}
	for k, ns := range times {
		p := tasktest.Plan(t, plans[k])
		if p = table.Canonical(p, size); ns > 0 {
			e.Candidates = append(e.Candidates, table.Candidate{Plan: p.String(), NS: ns, From: table.FromMeasured, Parsed: p})
		}
	}
	return e
}

// tableOf is a sorted table of some entries.
func tableOf(entries ...table.Entry) *table.Table {
	made := &table.Table{Version: table.Version, Provenance: table.Provenance{Method: "test"}, Entries: entries}
	made.Sort()
	return made
}

// bcast asks for so many bytes.
func bcast(size int64) tasks.Request {
	return tasks.Request{Coll: tasks.Bcast, Count: size, Type: tasks.Uint8}
}

// Times between sizes and between machines are on lines, each plan's for itself. Beyond the largest size
// they grow with the bytes, up to 16 times as many; below the smallest they stay.
func TestFindsBetween(t *testing.T) {
	made := tableOf(
		point(t, 4, 2, 1<<10, 100, 300), point(t, 4, 2, 3<<10, 300, 500), point(t, 8, 2, 1<<10, 200, 340), point(t, 8, 2, 3<<10, 500, 0),
	)
	for _, test := range []struct {
		on   string
		size int64
		want string // estimates of shapes in order, and origins
	}{
		{"4x2", 1 << 10, "flat 100 measured, han 300 measured"},
		{"4x2", 2 << 10, "flat 200 interpolated, han 400 interpolated"},
		{"4x2", 1, "flat 100 extrapolated, han 300 extrapolated"},
		{"4x2", 12 << 10, "flat 1200 extrapolated, han 2000 extrapolated"},
		{"4x2", 49 << 10, "49KiB is over 16 times more than the 3KiB it was measured up to"},
		{"6x2", 1 << 10, "flat 150 interpolated, han 340 interpolated"}, // a binomial tree goes by rounds
		{"6x2", 2 << 10, "flat 275 interpolated"},                       // han is unknown on one side
		{"16x2", 1 << 10, "flat 200 carried over, han 340 carried over"},
		{"33x2", 1 << 10, "i=33,s=2 is over 4 times larger or smaller than its machines for bcast"},
		{"2x2x2", 1 << 10, "its machines for bcast have other levels than i=2,m=2,s=2"},
	} {
		a := made.Find(bcast(test.size), tasktest.Topology(t, test.on), "", all.Submodules())
		var got []string
		for _, e := range a.Estimates {
			got = append(got, fmt.Sprintf("%v %.0f %s", e.Plan.Shape, e.NS, e.From))
		}
		if text := strings.Join(got, ", ") + a.Why; text != test.want {
			t.Errorf("%d bytes on %s: %s, want %s", test.size, test.on, text, test.want)
		}
	}
	barrier := made.Find(tasks.Request{Coll: tasks.Barrier}, tasktest.Topology(t, "4x2"), "", all.Submodules())
	if barrier.Why != "it has no entry for barrier" {
		t.Errorf("%+v", barrier)
	}
}

// Whatever was measured: answers are sorted, their neighbours weigh 1 together, a time between some is
// none below or above all of them, and an equal table gives the same answer.
func TestDrawnAnswers(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	for range 300 {
		var entries []table.Entry
		least, most := math.Inf(1), 0.0
		time := func() float64 {
			ns := 1 + 1000*rng.Float64()
			least, most = min(least, ns), max(most, ns)
			return ns
		}
		largest := int64(math.MaxInt64) // of all machines
		for _, nodes := range []int{2, 4, 8}[rng.IntN(3):] {
			for size := int64(64); size <= 64<<10; size *= 1 << (1 + rng.IntN(4)) {
				entries = append(entries, point(t, nodes, 2, size, time(), time()))
			}
			largest = min(largest, entries[len(entries)-1].Bytes)
		}
		made := tableOf(entries...)
		r := bcast(min(64+rng.Int64N(60<<10), largest))
		on := tasktest.Topology(t, fmt.Sprintf("%dx2", 3+rng.IntN(6)))
		a := made.Find(r, on, "", all.Submodules())
		rng.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		again := tableOf(entries...).Find(r, on, "", all.Submodules())
		if fmt.Sprint(a.Estimates, a.Why) != fmt.Sprint(again.Estimates, again.Why) {
			t.Fatalf("%v on %v: %+v, then %+v", r, on, a, again)
		}
		if a.Why != "" {
			continue
		}
		weight := 0.0
		for _, n := range a.Neighbours {
			weight += n.Weight
		}
		if math.Abs(weight-1) > 1e-9 {
			t.Errorf("%v on %v: neighbours weigh %v", r, on, weight)
		}
		if !slices.IsSortedFunc(a.Estimates, func(x, y table.Estimate) int { return int(math.Copysign(1, x.NS-y.NS)) }) || len(a.Estimates) == 0 {
			t.Errorf("%v on %v: %+v", r, on, a.Estimates)
		}
		for _, e := range a.Estimates {
			if e.From == table.FromInterpolated && (e.NS < least*(1-1e-9) || e.NS > most*(1+1e-9)) {
				t.Errorf("%v on %v: %v takes %v, measured were %v to %v", r, on, e.Plan, e.NS, least, most)
			}
		}
	}
}

// A written table is read as it was, and written the same again.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 2))
	for range 50 {
		made := tableOf()
		for size := int64(1); size <= 1<<20; size *= 1 << (1 + rng.IntN(6)) {
			e := point(t, 1<<rng.IntN(4), 2, size, 1+rng.Float64(), 2+rng.Float64(), 3+rng.Float64())
			if c := &e.Candidates[0]; rng.IntN(2) == 0 {
				c.Low, c.High = c.NS/2, 2*c.NS
			}
			made.Replace(e)
			made.Measured = append(made.Measured, table.Measurement{
				Collective: e.Collective, Levels: e.Levels, Place: e.Place, Bytes: size, Plan: e.Candidates[0].Plan, NS: 5, Low: 4, High: 6, Samples: rng.IntN(9),
			})
		}
		made.Sort()
		read, _ := tabletest.RoundTrip(t, made)
		if short := read.Decisions(); short.Measured != nil || len(short.Entries) != len(made.Entries) || len(read.Measured) != len(made.Measured) {
			t.Errorf("decisions have %d measurements", len(short.Measured))
		}
	}
}

// Plans that do the same with a message have one form, and that form stays.
func TestCanonical(t *testing.T) {
	for _, test := range []struct {
		plan  string
		bytes int64
		want  string
	}{
		{"shape=han,fs=64KiB,w=4,i=adapt/chain", 64 << 10, "shape=han,fs=all,w=1,i=adapt/chain"},
		{"shape=han,fs=32KiB,w=4,i=adapt/chain", 64 << 10, "shape=han,fs=32KiB,w=4,i=adapt/chain"},
		{"shape=han-lockstep,fs=1MiB,w=4,i=adapt/chain", 4096, "shape=han,fs=all,w=1,i=adapt/chain"},
		{"shape=han,fs=8KiB,w=4,i=adapt/chain/8KiB", 64 << 10, "shape=han,fs=8KiB,w=4,i=adapt/chain"},
		{"shape=han,fs=all,w=1,i=adapt/chain/8KiB", 64 << 10, "shape=han,fs=all,w=1,i=adapt/chain/8KiB"},
		{"shape=flat,fs=all,w=1,eager=4KiB,ia=adapt/pairwise", 4096, "shape=flat,fs=all,w=1,eager=all,ia=adapt/pairwise"},
		{"shape=flat,fs=all,w=1,eager=4KiB,ia=adapt/pairwise", 4097, "shape=flat,fs=all,w=1,eager=4KiB,ia=adapt/pairwise"},
	} {
		p := tasktest.Plan(t, test.plan)
		got := table.Canonical(p, test.bytes)
		if got.String() != test.want || !table.Canonical(got, test.bytes).Equal(got) {
			t.Errorf("%s of %d bytes: %v, want %s", test.plan, test.bytes, got, test.want)
		}
	}
}

// An entry replaces the one for its point, is found beside those of other collectives, and counts as
// measured unless its fastest plan was predicted.
func TestEntries(t *testing.T) {
	made := tableOf(point(t, 4, 2, 1024, 100), point(t, 4, 2, 2048, 100))
	next := point(t, 4, 2, 1024, 0, 50)
	next.Candidates[0].From = table.FromPredicted
	if !made.Measures(&next) {
		t.Error("a measured point is not")
	}
	made.Replace(next)
	if made.Sort(); len(made.Entries) != 2 || made.Entries[0].Candidates[0].NS != 50 || made.Measures(&next) {
		t.Errorf("%+v", made.Entries)
	}
	sum := next
	sum.Collective = "allreduce"
	sum.Type, sum.Op = "f32", table.BuiltIn
	if e := made.Beside(&sum, tasks.Bcast); e == nil || e.Key() != next.Key() || made.Beside(&sum, tasks.Reduce) != nil {
		t.Errorf("beside %s: %+v", sum.Key(), e)
	}
	m := table.Measurement{Collective: "bcast", Levels: table.Sizes{"s": 2, "i": 4}, Place: next.Place, Bytes: 1024}
	if !m.IsOf(&next) || m.IsOf(&sum) || m.IsOf(&made.Entries[1]) {
		t.Errorf("%+v is of another point", m)
	}
	if low, high := next.Candidates[0].Interval(); low != 50 || high != 50 {
		t.Errorf("without an interval: %v to %v", low, high)
	}
	made.Replace(point(t, 4, 2, 1024))
	if len(made.Entries) != 1 || made.Entries[0].Bytes != 2048 {
		t.Errorf("an entry without candidates stays: %+v", made.Entries)
	}
	if nodes, perNode := (table.Sizes{"i": 4, "c": 2, "s": 3, "m": 5}).Machine(); nodes != 8 || perNode != 15 {
		t.Errorf("%d nodes, %d ranks on each", nodes, perNode)
	}
}

// What was tried answers for its own point, also between measured ones, and for nothing near it.
func TestTriedPoints(t *testing.T) {
	tried := point(t, 4, 2, 2<<10, 50)
	tried.Tried = true
	made, _ := tabletest.RoundTrip(t, tableOf(point(t, 4, 2, 1<<10, 100, 300), tried, point(t, 4, 2, 3<<10, 300, 500)))
	alone := tableOf(tried)
	older := tabletest.Parse(t, strings.Replace(strings.Replace(encoded(t, alone), `"method": "test"`, `"method": "`+table.Tried+`"`, 1), `,"tried":true`, "", 1))
	for _, test := range []struct {
		of   *table.Table
		on   string
		size int64
		want string
	}{
		{made, "4x2", 2 << 10, "50 measured"},
		{made, "4x2", 2<<10 + 1, "200 interpolated"},
		{alone, "4x2", 2 << 10, "50 measured"},
		{alone, "4x2", 2<<10 + 1, "this size was not tried"},
		{alone, "2x2", 2 << 10, "this size was not tried"},
		{older, "4x2", 2 << 10, "50 measured"},
		{older, "4x2", 1 << 10, "this size was not tried"},
	} {
		a := test.of.Find(bcast(test.size), tasktest.Topology(t, test.on), "", all.Submodules())
		got := a.Why
		if len(a.Estimates) > 0 {
			got = fmt.Sprintf("%.0f %s", a.Estimates[0].NS, a.Estimates[0].From)
		}
		if got != test.want {
			t.Errorf("%d bytes on %s: %s, want %s", test.size, test.on, got, test.want)
		}
	}
	one, other := point(t, 4, 2, 1<<10), point(t, 4, 2, 2<<10)
	if !made.Knows(&one) || made.Knows(&other) {
		t.Errorf("known are %v and %v, want what was measured, and not what was tried", made.Knows(&one), made.Knows(&other))
	}
}

// encoded is a table's file.
func encoded(t *testing.T, made *table.Table) string {
	t.Helper()
	_, text := tabletest.RoundTrip(t, made)
	return string(text)
}

// A table takes from another one what it knows of other machines, and neither what was tried nor times of another kind.
func TestJoin(t *testing.T) {
	tried := point(t, 2, 2, 4<<10, 7)
	tried.Tried = true
	other := tableOf(point(t, 4, 2, 2<<10, 1), point(t, 8, 2, 1<<10, 200), tried)
	other.Provenance.Hosts = []string{"b", "c"}
	made := tableOf(point(t, 4, 2, 1<<10, 100))
	made.Provenance.Hosts = []string{"a", "b"}
	if !made.Join(other) || made.Join(tableOf(tried)) {
		t.Error("something is to be added once")
	}
	var got []string
	for i := range made.Entries {
		got = append(got, made.Entries[i].Key())
	}
	one, two := point(t, 4, 2, 1<<10), point(t, 8, 2, 1<<10)
	if want := []string{one.Key(), two.Key()}; !slices.Equal(got, want) || strings.Join(made.Provenance.Hosts, "") != "abc" {
		t.Errorf("entries %q of hosts %q; want %q", got, made.Provenance.Hosts, want)
	}
	for _, spoil := range []func(p *table.Provenance){
		func(p *table.Provenance) { p.Simulated = "somewhere" },
		func(p *table.Provenance) { p.Regime = costs.BackToBack },
	} {
		other := tableOf(point(t, 2, 2, 1<<10, 3))
		if spoil(&other.Provenance); made.Join(other) || len(made.Entries) != 2 {
			t.Errorf("%+v mixes with %+v", other.Provenance, made.Provenance)
		}
	}
}

func TestSizes(t *testing.T) {
	s, err := table.ParseSizes("i=4,s=2")
	if err != nil || s.String() != "i=4,s=2" {
		t.Errorf("%v, %v", s, err)
	}
	for _, bad := range []string{"", "i", "i=", "i=0", "i=-1", "i=x", "ab=1", "i=1,i=2", "=3"} {
		if s, err := table.ParseSizes(bad); err == nil {
			t.Errorf("%q is %v", bad, s)
		}
	}
	for _, test := range []struct {
		other table.Sizes
		times float64
		near  bool
	}{
		{table.Sizes{"i": 4, "s": 2}, 1, true},
		{table.Sizes{"i": 16, "s": 1}, 4, true},
		{table.Sizes{"i": 17, "s": 2}, 4.25, false},
		{table.Sizes{"s": 2}, 0, false},
	} {
		if times, near := s.Times(test.other); times != test.times || near != test.near {
			t.Errorf("%v and %v: %v, %v; want %v, %v", s, test.other, times, near, test.times, test.near)
		}
	}
}

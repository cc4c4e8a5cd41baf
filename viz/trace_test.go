package viz

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

var _ trace.Source = (*submodules.Program)(nil)

// script is a source whose step n is of the n-th task.
type script []string

func (s script) Describe(step int32) (task, label, kind string, level byte, bytes int64) {
	task = s[step]
	return task, task + " copy r0 1KiB", "copy", task[0], 1024
}

var pipeline = script{"sr#0", "ir#0", "ib#0", "sb#0", "iar#0"}

// event is a step of the pipeline on a rank.
func event(rank levels.Rank, step int32, begin, end int64) trace.Event {
	return trace.Event{Source: pipeline, Rank: rank, Step: step, Begin: begin, End: end}
}

// playedBcast is what the programs of a plan would record if each step began one
// microsecond after the one before and took 1.5.
func playedBcast(t testing.TB) []trace.Event {
	t.Helper()
	var events []trace.Event
	for _, p := range (problem{"2x2", segments(tasks.Bcast, 2), han}).programs(t) {
		at := int64(p.Rank) * 500
		for _, id := range p.Order() {
			events = append(events, trace.Event{Source: p, Rank: p.Rank, Run: 3, Step: int32(id), Begin: at, End: at + 1500})
			at += 1000
		}
	}
	return events
}

func TestGoldenPerfetto(t *testing.T) {
	dagtest.Golden(t, goldens+"bcast_2x2_trace.json", Perfetto(playedBcast(t)))
	dagtest.Golden(t, goldens+"bcast_2x2_timeline.txt", Timeline(playedBcast(t), 60))
}

// chrome is what a viewer reads.
type chrome struct {
	TraceEvents []struct {
		Name, Ph string
		Ts, Dur  float64
		Pid, Tid int
		Args     map[string]any
	}
}

// On one thread slices must not overlap, or viewers draw nonsense.
func TestPerfettoLanes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var events []trace.Event
	for range 2000 {
		begin := random.Int64N(1e6)
		events = append(events, event(levels.Rank(random.IntN(3)), int32(random.IntN(4)), begin, begin+random.Int64N(5000)))
	}
	events = append(events, trace.Event{Source: pipeline, Step: trace.WholeRun, End: 1e6})
	var got chrome
	if err := json.Unmarshal(Perfetto(events), &got); err != nil {
		t.Fatal(err)
	}
	type thread struct{ pid, tid int }
	end, names, slices := map[thread]float64{}, map[thread]string{}, 0
	for _, e := range got.TraceEvents {
		at := thread{e.Pid, e.Tid}
		switch {
		case e.Name == "thread_name":
			names[at] = e.Args["name"].(string)
		case e.Ph == "X":
			slices++
			if names[at] == "" || names[at][0] != e.Name[0] {
				t.Fatalf("%s is on thread %q", e.Name, names[at])
			}
			if e.Ts < end[at]-1e-6 { // decimals of thousandths are not exact
				t.Fatalf("rank %d thread %q: %s begins at %v, before %v", e.Pid, names[at], e.Name, e.Ts, end[at])
			}
			end[at] = e.Ts + e.Dur
		}
	}
	if slices != len(events)-1 {
		t.Errorf("%d slices of %d steps", slices, len(events)-1)
	}
	if len(names) < 7 {
		t.Errorf("threads %v; the events are too few to need lanes", names)
	}
}

func TestLanesAreFew(t *testing.T) {
	tr := tracks([]trace.Event{event(0, 1, 0, 10), event(0, 1, 2, 4), event(0, 1, 4, 6), event(0, 2, 10, 20)})
	lane, n := tr[0].lanes()
	if n != 2 || !slices.Equal(lane, []int{0, 1, 1, 0}) {
		t.Errorf("lanes %v of %d, want [0 1 1 0] of 2", lane, n)
	}
}

func TestMicroseconds(t *testing.T) {
	for ns, want := range map[microsecond]string{0: "0.000", 1: "0.001", 1234567: "1234.567", -1500: "-1.500", 1 << 62: "4611686018427387.904"} {
		if got, _ := ns.MarshalJSON(); string(got) != want {
			t.Errorf("%d ns are %s µs, want %s", int64(ns), got, want)
		}
	}
}

func TestPerfettoOfNothing(t *testing.T) {
	if got := Perfetto(nil); !json.Valid(got) {
		t.Errorf("not JSON: %s", got)
	}
}

func TestTimeline(t *testing.T) {
	for _, c := range []struct {
		what   string
		events []trace.Event
		width  int
		want   string
	}{
		{"nothing", nil, 10, "no events\n"},
		{"a moment", []trace.Event{event(0, 0, 7, 7)}, 5, "0s from 7ns; a column is 1ns\nrank 0  s  r....\n"},
		{"a moment at the end", []trace.Event{event(0, 0, 0, 10), event(0, 3, 10, 10)}, 5, "10ns from 0s; a column is 2ns\nrank 0  s  rrrr*\n"},
		{"no width", []trace.Event{event(0, 0, 0, 10)}, 0, "10ns from 0s; a column is 10ns\nrank 0  s  r\n"},
		{
			"all letters",
			[]trace.Event{event(1, 0, 0, 10), event(1, 1, 10, 20), event(1, 2, 15, 30), event(1, 3, 35, 40), event(0, 4, 0, 40)},
			8,
			"40ns from 0s; a column is 5ns\nrank 0  i  RRRRRRRR\nrank 1  i  ..r*bb..\nrank 1  s  rr.....b\n",
		},
	} {
		if got := string(Timeline(c.events, c.width)); got != c.want {
			t.Errorf("%s:\n%swant:\n%s", c.what, got, c.want)
		}
	}
}

func TestOverlap(t *testing.T) {
	events := []trace.Event{
		event(0, 2, 0, 10), event(0, 2, 5, 12), event(0, 2, 20, 30), // i: 0–12, 20–30
		event(0, 3, 8, 22), event(0, 3, 29, 40), // s: 8–22, 29–40
		event(1, 3, 0, 1000), // another rank
	}
	for _, c := range []struct {
		rank       levels.Rank
		a, b       byte
		both, x, y time.Duration
	}{
		{0, 'i', 's', 4 + 2 + 1, 22, 25},
		{0, 's', 'i', 7, 25, 22},
		{0, 'i', 'i', 22, 22, 22},
		{0, 'i', 'm', 0, 22, 0},
		{1, 'i', 's', 0, 0, 1000},
		{2, 'i', 's', 0, 0, 0},
	} {
		if both, x, y := Overlap(events, c.rank, c.a, c.b); both != c.both || x != c.x || y != c.y {
			t.Errorf("rank %d, %c and %c: %v %v %v, want %v %v %v", c.rank, c.a, c.b, both, x, y, c.both, c.x, c.y)
		}
	}
}

// The slow twin of Overlap looks at every nanosecond.
func TestOverlapAgainstCounting(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var events []trace.Event
		var busy [2][100]bool
		for range random.IntN(12) {
			step, begin := int32(2+random.IntN(2)), random.Int64N(90)
			end := begin + random.Int64N(100-begin)
			events = append(events, event(0, step, begin, end))
			for at := begin; at < end; at++ {
				busy[step-2][at] = true
			}
		}
		var both, a, b time.Duration
		for at := range busy[0] {
			i, s := busy[0][at], busy[1][at]
			both += count(i && s)
			a += count(i)
			b += count(s)
		}
		if x, y, z := Overlap(events, 0, 'i', 's'); x != both || y != a || z != b {
			t.Fatalf("%v %v %v, want %v %v %v for %v", x, y, z, both, a, b, events)
		}
	}
}

func count(yes bool) time.Duration {
	if yes {
		return 1
	}
	return 0
}

func TestProgramsDescribeSteps(t *testing.T) {
	var got []string
	for _, e := range playedBcast(t)[:4] {
		task, label, kind, level, bytes := e.Source.Describe(e.Step)
		got = append(got, fmt.Sprintf("%s|%s|%s|%c|%d", task, label, kind, level, bytes))
	}
	want := []string{
		"ib#0|ib#0 send r0>r2 64KiB|send|i|65536", "sb#0|sb#0 copy r0 64KiB|copy|s|65536",
		"sb#0|sb#0 notify r0>r1|notify|s|65536", "sb#0|sb#0 await r1>r0|await|s|0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

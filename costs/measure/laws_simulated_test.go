package measure_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// simulated returns a bench on the assumed machine, after a change to it.
func simulated(t *testing.T, topo string, change func(m *machine.Machine)) *measure.Simulated {
	t.Helper()
	m := machine.Assumed()
	if change != nil {
		change(m)
	}
	return measure.NewSimulated(tasktest.Topology(t, topo), m, all.Submodules())
}

// A message takes half a round trip: its latency, its bytes and both processors. Others of a stream
// follow it as fast as the slowest of wire and processors lets them.
func TestSimulatedPassage(t *testing.T) {
	bench := simulated(t, "2x2", func(m *machine.Machine) {
		m.Step = 0
		m.Links = []machine.Link{{Level: 's', Latency: 100, Send: 10, Recv: 20}, {Level: 'i', Latency: 10e3, Byte: 10, Send: 100, Recv: 200}}
	})
	for _, test := range []struct {
		from, to      int
		n             int64
		alone, stream float64 // ns
	}{
		{0, 1, 1, 130, 20},
		{0, 2, 1, 10_310, 200},
		{0, 2, 100, 11_300, 1000},
		{3, 1, 100, 11_300, 1000},
	} {
		got, err := bench.Passage(t.Context(), levels.Rank(test.from), levels.Rank(test.to), test.n, stats.Stop{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got.Alone/test.alone-1) > 0.01 || got.Stream < test.stream || got.Stream > 1.25*test.stream+got.Alone/16 {
			t.Errorf("%d bytes from %d to %d: %+v, want %v alone and %v in a stream", test.n, test.from, test.to, got, test.alone, test.stream)
		}
	}
}

// Ranks measure messages between two of them while the others wait, and all know the result.
func TestPassage(t *testing.T) {
	for _, n := range []int64{1, 10_000} {
		got := onRanks(t, "2x2", func(ctx context.Context, b *measure.Bench) (measure.Passage, error) {
			return b.Passage(ctx, 1, 2, n, brief)
		})
		if !(got.Alone > 0) || !(got.Stream > 0) {
			t.Errorf("%d bytes: %+v", n, got)
		}
	}
}

// Tasks of phases run by themselves on ranks: each segment is complete after the one before it.
func TestTaskOnRanks(t *testing.T) {
	r, p := tasktest.Request(tasks.Allreduce, 64<<10), tasktest.Plan(t, "shape=han"+choices)
	for _, phases := range [][]int{{0}, {1, 2}, {0, 1, 2, 3}} {
		got := onRanks(t, "2x2", func(ctx context.Context, b *measure.Bench) (costs.Pipeline, error) {
			return b.Task(ctx, r, p, phases, 5, brief)
		})
		if got.Segments != 5 || got.Phases != len(phases) || len(got.Leaders) != 1 || got.Whole.N != 3 || !slices.IsSorted(got.Leaders[0].Done) {
			t.Errorf("phases %v: %+v", phases, got)
		}
	}
}

// Two tasks over different resources hide each other: together they take longer than the longer one,
// and less than both one after the other.
func TestSimulatedOverlap(t *testing.T) {
	between, inside := tasks.Kind{Symbol: 'i', Op: tasks.Bcast}, tasks.Kind{Symbol: 's', Op: tasks.Bcast}
	plan := tasktest.Plan(t, "shape=han,fs=64KiB,w=4,i=adapt/binomial,s=sm")
	bench := simulated(t, "3x2", nil)
	got, err := bench.Overlap(t.Context(), tasktest.Request(tasks.Bcast, 256<<10), plan, [2]tasks.Kind{between, inside}, stats.Stop{})
	if err != nil {
		t.Fatal(err)
	}
	a, b, both := got.Alone[0].P50, got.Alone[1].P50, got.Together.P50
	if both < 0.99*max(a, b) || both > 1.01*(a+b) {
		t.Errorf("alone %.0f and %.0f ns, together %.0f", a, b, both)
	}
	for _, c := range []costs.Cost{got.Alone[0], got.Alone[1], got.Together} {
		if len(c.Leaders) != 3 || c.N != 1 {
			t.Errorf("%+v", c)
		}
	}
	for _, test := range []struct {
		coll  tasks.Collective
		kinds [2]tasks.Kind
		want  string
	}{
		{tasks.Gather, [2]tasks.Kind{between, inside}, "only of bcast and allreduce"},
		{tasks.Bcast, [2]tasks.Kind{between, {Symbol: 's', Op: tasks.Reduce}}, "makes no tasks sr"},
	} {
		_, err := bench.Overlap(t.Context(), tasktest.Request(test.coll, 256<<10), plan, test.kinds, stats.Stop{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v of %v: %v, want %q", test.kinds, test.coll, err, test.want)
		}
	}
}

func TestHidden(t *testing.T) {
	for _, test := range []struct{ a, b, together, want float64 }{
		{10, 4, 10, 1}, {4, 10, 10, 1}, {10, 4, 14, 0}, {10, 4, 12, 0.5}, {10, 4, 16, -0.5}, {5, 5, 5, 1},
	} {
		if got := measure.Hidden(test.a, test.b, test.together); got != test.want {
			t.Errorf("of %v and %v, together %v: %v is hidden, want %v", test.a, test.b, test.together, got, test.want)
		}
	}
}

// If ranks share processors, the time to switch between them is found again on a simulated machine.
func TestSwitchIsFoundAgain(t *testing.T) {
	for _, want := range []float64{2000, 20_000} {
		bench := simulated(t, "6x1", func(m *machine.Machine) { m.Cores = machine.Cores{InAll: 2, Switch: want} })
		found, err := bench.Machine(t.Context(), measure.Setup{Cores: machine.Cores{InAll: 2}, Frame: machine.Assumed().Links[1]}, []int64{1}, stats.Stop{})
		if err != nil {
			t.Fatal(err)
		}
		if got := found.Machine.Cores.Switch; math.Abs(got/want-1) > 0.2 {
			t.Errorf("a switch takes %.0f ns, want %.0f", got, want)
		}
		at := slices.IndexFunc(found.Numbers, func(n measure.Number) bool { return n.Key == "switch_ns" })
		if at < 0 || found.Numbers[at].Value != found.Machine.Cores.Switch {
			t.Errorf("numbers %+v", found.Numbers)
		}
	}
}

// Every number of a machine is reported once, and none is negative; each curve has all sizes.
func TestFoundIsComplete(t *testing.T) {
	sizes := []int64{1, 100, 10_000}
	found, err := simulated(t, "3x4", nil).Machine(t.Context(), measure.Setup{Frame: machine.Assumed().Links[1]}, sizes, stats.Stop{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, n := range found.Numbers {
		if seen[n.Key] || n.Value < 0 || n.Half < 0 || math.IsNaN(n.Value+n.Half) {
			t.Errorf("%+v", n)
		}
		seen[n.Key] = true
	}
	for _, key := range strings.Fields("call_ns step_ns copy_byte_ns reduce_byte_ns peer_copy_ns peer_byte_ns s.send_ns s.recv_ns s.latency_ns s.send_byte_ns i.send_ns i.recv_ns i.latency_ns i.byte_ns i.send_byte_ns i.recv_byte_ns") {
		if !seen[key] {
			t.Errorf("no number %s in %v", key, found.Numbers)
		}
	}
	for _, c := range found.Curves {
		if c.Pairs < 1 || len(c.Points) != len(sizes) {
			t.Errorf("level %c, %v: %d pairs, %d points", c.Level, c.Way, c.Pairs, len(c.Points))
		}
		for i, p := range c.Points {
			if p.Bytes != sizes[i] || p.Messages < 2 || i > 0 && p.NS < c.Points[i-1].NS {
				t.Errorf("level %c, %v of %d pairs: %+v after %+v", c.Level, c.Way, c.Pairs, p, c.Points[max(i-1, 0)])
			}
		}
	}
	if _, err := found.Machine.Format(); err != nil {
		t.Error(err)
	}
}

// A bench of simulated time adds up the times of its measurements on the machine.
func TestSpent(t *testing.T) {
	bench := simulated(t, "4x2", nil)
	if bench.Spent() != 0 || bench.Rank() != 0 || bench.Topology().Size() != 8 {
		t.Errorf("a new bench of rank %d on %v has spent %v", bench.Rank(), bench.Topology(), bench.Spent())
	}
	r, plan := tasktest.Request(tasks.Bcast, 1<<20), tasktest.Plan(t, "shape=han,fs=64KiB,w=4,i=adapt/chain,s=sm")
	before := time.Duration(0)
	for range 3 {
		one, err := bench.Collective(t.Context(), r, plan, brief)
		if err != nil {
			t.Fatal(err)
		}
		if took := bench.Spent() - before; math.Abs(float64(took)-one.Spent) > 10 {
			t.Errorf("a measurement takes %v, by its result %.0f ns", took, one.Spent)
		}
		before = bench.Spent()
	}
}

// All numbers are called for, each once.
func TestBeside(t *testing.T) {
	bench := simulated(t, "2x1", nil)
	for _, n := range []int{0, 1, 2, 100} {
		var mu sync.Mutex
		counts := make([]int, n)
		bench.Beside(n, func(i int) {
			mu.Lock()
			defer mu.Unlock()
			counts[i]++
		})
		if slices.ContainsFunc(counts, func(c int) bool { return c != 1 }) {
			t.Errorf("calls for %d numbers: %v", n, counts)
		}
	}
}

// Questions to one bench at the same time have the answers of questions one after the other.
func TestSimulatedAtTheSameTime(t *testing.T) {
	bench := simulated(t, "4x2", func(m *machine.Machine) { m.Noise = 0.1 })
	plans := []string{"shape=han,fs=64KiB,w=4,i=adapt/chain,s=sm", "shape=flat,fs=64KiB,w=4,i=adapt/binary", "shape=han,fs=all,w=1,i=adapt/binomial,s=solo"}
	ask := func(i int) string {
		got, err := bench.Collective(t.Context(), tasktest.Request(tasks.Bcast, 256<<10), tasktest.Plan(t, plans[i%len(plans)]), brief)
		return fmt.Sprint(got.Series, got.Ranks, err)
	}
	var want []string
	for i := range plans {
		want = append(want, ask(i))
	}
	got := make([]string, 4*len(plans))
	bench.Beside(len(got), func(i int) { got[i] = ask(i) })
	for i := range got {
		if got[i] != want[i%len(plans)] {
			t.Errorf("%s: %s, alone %s", plans[i%len(plans)], got[i], want[i%len(plans)])
		}
	}
}

// With an ended context every question fails, and nothing is simulated.
func TestSimulatedEnds(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	bench, r := simulated(t, "4x2", nil), tasktest.Request(tasks.Bcast, 1<<20)
	flow, lock := tasktest.Plan(t, "shape=han,fs=64KiB,w=4,i=adapt/chain,s=sm"), tasktest.Plan(t, "shape=han-lockstep,fs=64KiB,w=4,i=adapt/chain,s=sm")
	for name, ask := range map[string]func() error{
		"pipeline": func() error { _, err := bench.Pipeline(ended, r, flow, brief); return err },
		"stages":   func() error { _, err := bench.Stages(ended, r, lock, brief, &costs.Book{}); return err },
		"task":     func() error { _, err := bench.Task(ended, r, flow, []int{0}, 4, brief); return err },
		"passage":  func() error { _, err := bench.Passage(ended, 0, 1, 8, brief); return err },
		"γ":        func() error { _, err := bench.Gamma(ended, 4, 8, brief); return err },
		"gather":   func() error { _, err := bench.Gather(ended, 8, brief); return err },
		"followed": func() error { _, err := bench.Followed(ended, r, flow, 8, brief); return err },
		"machine":  func() error { _, err := bench.Machine(ended, measure.Setup{}, []int64{8}, brief); return err },
		"overlap": func() error {
			_, err := bench.Overlap(ended, r, flow, [2]tasks.Kind{{Symbol: 'i', Op: tasks.Bcast}, {Symbol: 's', Op: tasks.Bcast}}, brief)
			return err
		},
	} {
		if err := ask(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if bench.Spent() != 0 {
		t.Errorf("%v were spent", bench.Spent())
	}
}

// A pipeline of lockstep stages and stages of an unknown algorithm are refused, with the plan named.
func TestSimulatedRefuses(t *testing.T) {
	bench, r := simulated(t, "4x2", nil), tasktest.Request(tasks.Bcast, 1<<20)
	lock := tasktest.Plan(t, "shape=han-lockstep,fs=64KiB,w=4,i=adapt/chain,s=sm")
	if _, err := bench.Pipeline(t.Context(), r, lock, brief); err == nil || !strings.Contains(err.Error(), "has stages, not segments that flow") {
		t.Errorf("a pipeline in lockstep: %v", err)
	}
	unknown := lock.Set("i", tasks.Choice{Submodule: "none"})
	book := &costs.Book{}
	if _, err := bench.Stages(t.Context(), r, unknown, brief, book); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("stages of an unknown submodule: %v", err)
	}
	if _, err := bench.Collective(t.Context(), r, unknown, brief); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a collective by an unknown submodule: %v", err)
	}
	if len(book.Keys()) != 0 {
		t.Errorf("a book after an error has %v", book.Keys())
	}
}

// Stages of a simulated machine say the same again, and of a filled book nothing.
func TestSimulatedStagesRepeat(t *testing.T) {
	r, lock := tasktest.Request(tasks.Allreduce, 1<<20), tasktest.Plan(t, "shape=han-lockstep,fs=64KiB,w=4,i=adapt/chain,s=sm")
	for _, noise := range []float64{0, 0.1} {
		bench := simulated(t, "4x2", func(m *machine.Machine) { m.Noise = noise })
		book, other := &costs.Book{}, &costs.Book{}
		series, err := bench.Stages(t.Context(), r, lock, brief, book)
		if err != nil || len(series) == 0 || len(book.Keys()) == 0 {
			t.Fatalf("%v, %d keys, %v", series, len(book.Keys()), err)
		}
		again, err := bench.Stages(t.Context(), r, lock, brief, other)
		if err != nil || !reflect.DeepEqual(again, series) || !reflect.DeepEqual(other.Keys(), book.Keys()) {
			t.Errorf("%v, then %v, %v", series, again, err)
		}
		for _, key := range book.Keys() {
			one, _ := book.Cost(key)
			if two, known := other.Cost(key); !known || !reflect.DeepEqual(one, two) {
				t.Errorf("%v: %+v, then %+v", key, one, two)
			}
		}
		if none, err := bench.Stages(t.Context(), r, lock, brief, book); err != nil || none != nil {
			t.Errorf("with a full book: %v, %v", none, err)
		}
	}
}

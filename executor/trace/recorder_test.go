package trace_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
)

// numbered is a source whose steps have their numbers for labels.
type numbered struct{}

var _ trace.Source = numbered{}

func (numbered) Describe(step int32) (task, label, kind string, level byte, bytes int64) {
	return "ib#0", fmt.Sprintf("ib#0 step %d", step), "send", 'i', 0
}

func Example() {
	rec := trace.NewRecorder()
	hooks := rec.Hooks()
	hooks.Step(trace.Event{Source: numbered{}, Rank: 1, Step: 7, Begin: 200, End: 250})
	hooks.Step(trace.Event{Source: numbered{}, Rank: 0, Step: 4, Begin: 100, End: 300})
	for _, e := range rec.Events() {
		_, label, _, _, _ := e.Source.Describe(e.Step)
		fmt.Printf("rank %d: %s, %d ns\n", e.Rank, label, e.End-e.Begin)
	}
	// Output:
	// rank 0: ib#0 step 4, 200 ns
	// rank 1: ib#0 step 7, 50 ns
}

func TestRecorderTakesAllRanksAtOnce(t *testing.T) {
	const ranks, steps = 70, 2500 // more ranks than locks, more steps than a block holds
	rec := trace.NewRecorder()
	var all sync.WaitGroup
	for r := range levels.Rank(ranks) {
		all.Go(func() {
			hooks := rec.Hooks()
			for s := range int32(steps) {
				hooks.Step(trace.Event{Rank: r, Step: s, Begin: int64(s / 2)})
			}
		})
	}
	rec.Events() // reading meanwhile is allowed
	all.Wait()
	var want []trace.Event
	for begin := range int64(steps / 2) {
		for r := range levels.Rank(ranks) {
			s := int32(2 * begin)
			want = append(want, trace.Event{Rank: r, Step: s, Begin: begin}, trace.Event{Rank: r, Step: s + 1, Begin: begin})
		}
	}
	if got := rec.Events(); !slices.Equal(got, want) {
		t.Errorf("%d events, want %d, sorted by begin, rank and step", len(got), len(want))
	}
}

func TestEqualEventsStayInOrder(t *testing.T) {
	rec := trace.NewRecorder()
	for run := range uint32(3) {
		rec.Hooks().Step(trace.Event{Run: run, Begin: 5})
	}
	var runs []uint32
	for _, e := range rec.Events() {
		runs = append(runs, e.Run)
	}
	if diff := cmp.Diff([]uint32{0, 1, 2}, runs); diff != "" {
		t.Error(diff)
	}
}

func TestHooksCountFromOneEpoch(t *testing.T) {
	rec := trace.NewRecorder()
	a, b := rec.Hooks(), rec.Hooks()
	if !a.Epoch.Equal(b.Epoch) || time.Since(a.Epoch) < 0 || time.Since(a.Epoch) > time.Minute {
		t.Errorf("epochs %v and %v; both should be when the recorder was made", a.Epoch, b.Epoch)
	}
	if a.Run != nil {
		t.Error("the recorder keeps steps only, but has a hook for runs")
	}
}

func BenchmarkRecord(b *testing.B) {
	hooks := trace.NewRecorder().Hooks()
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		hooks.Step(trace.Event{Source: numbered{}, Begin: i, End: i + 1})
	}
}

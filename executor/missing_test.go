package executor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// In a chain of ranks one has not come. All others wait, most of them for ranks that
// wait themselves. Only the missing one is called missing, and each rank's recording
// has its open step.
func TestMissingRanks(t *testing.T) {
	const absent = 2
	var log lines
	inBubble(t, 6, executor.Config{StallAfter: time.Second, Stalls: log.logger()}, func(t *testing.T, w *executor.World) {
		h, p := parse(t, "6", "shape=flat,fs=all,w=1,s=adapt/chain")
		runs := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32}, p}.bind(t, nil, raws(numbers(6, 3)))
		done := make(chan error, 6)
		for r, run := range runs {
			if r != absent {
				go func() { done <- run.Do(t.Context()) }()
			}
		}
		clocktest.Pass(1500 * time.Millisecond)
		var waiting []string
		for r := range levels.Rank(6) {
			waiting = append(waiting, w.Endpoint(r).Waiting()...)
		}
		want := []string{
			"rank 3, bcast 3 i32 root 0: waits for r2 since 1.4 s: ib#0 recv r2>r3 12B",
			"rank 4, bcast 3 i32 root 0: waits for r3 (in the call too) since 1.4 s: ib#0 recv r3>r4 12B",
			"rank 5, bcast 3 i32 root 0: waits for r4 (in the call too) since 1.4 s: ib#0 recv r4>r5 12B",
		}
		if got := strings.ReplaceAll(strings.Join(waiting, "\n"), "sb#0", "ib#0"); got != strings.Join(want, "\n") {
			t.Errorf("waiting\n%s\nwant\n%s", got, strings.Join(want, "\n"))
		}
		if a := w.Endpoint(5).Activity(1, func(levels.Rank) int { return 0 }); a.Stalls != 1 {
			t.Errorf("%d stalls, want one", a.Stalls)
		}
		var missing []string
		verdicts := 0
		for _, l := range strings.Split(log.text(), "\n") {
			if at := strings.LastIndex(l, "missing="); at >= 0 {
				missing = append(missing, l[at:])
			} else if strings.Contains(l, `verdict="late: rank 2 has not come to bcast 3 i32 root 0 #0 for 1.0 s`) {
				verdicts++
			}
		}
		if slices.Sort(missing); verdicts != 1 {
			t.Errorf("%d verdicts on rank 2, want one, in %q", verdicts, log.text())
		}
		if got := fmt.Sprint(missing); got != "[missing=none missing=none missing=r2]" {
			t.Errorf("logged %s", got)
		}
		rec := w.Endpoint(3).Recording()
		if open := rec.Unfinished(); len(open) != 1 || !strings.HasSuffix(open[0].Waits, "recv r2>r3 12B") {
			t.Errorf("the recording has %+v", open)
		}
		if err := runs[absent].Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if rec := w.Endpoint(3).Recording(); len(rec.Unfinished()) != 0 || len(rec.Calls) != 1 {
			t.Errorf("after the end: %+v", rec.Calls)
		}
	})
}

// The recorder's names of messages are the executor's; what it records is what
// the engines told each other.
func TestRecordedMessages(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	runs := crossed(t, w, 0)
	do(t, w, runs)
	var got []string
	for r := range levels.Rank(2) {
		for _, e := range w.Endpoint(r).Recording().Events {
			text := fmt.Sprintf("%d %v", r, e.Kind)
			if e.Message > 0 {
				text += fmt.Sprintf(" %s %d %d", flight.Messages[e.Message], e.Peer, e.Bytes)
			}
			got = append(got, text)
		}
	}
	want := "[0 begin 0 sent eager 1 12 0 end 1 begin 1 received eager 0 12 1 end]"
	if fmt.Sprint(got) != want && fmt.Sprint(got) != strings.Replace(want, "1 begin 1 received eager 0 12", "1 received eager 0 12 1 begin", 1) {
		t.Errorf("recorded %v, want %s", got, want)
	}
	if rec := newWorld(t, 1, executor.Config{RecorderEvents: -1}).Endpoint(0).Recording(); rec != nil {
		t.Errorf("switched off, there is %+v", rec)
	}
}

package watch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/planner/raw"
)

// looks are two looks at three ranks, a second apart: ranks 0 and 2 wait, rank 1 makes ten calls, ran
// and was kept from a processor for as long as is told.
func looks(ran, delayed time.Duration) (before, now *usages) {
	begin := time.Unix(0, 0)
	before = &usages{at: begin, times: make([]processorTime, 3)}
	now = &usages{at: begin.Add(time.Second), times: make([]processorTime, 3)}
	for r := range 3 {
		before.ranks = append(before.ranks, &raw.Usage{Rank: r})
		u := &raw.Usage{Rank: r, Activity: executor.Activity{Waited: 900 * time.Millisecond, Calls: []executor.Calls{{Count: 7}, {Count: 3}}}}
		if r == 1 {
			u.Waited = 0
		}
		now.ranks = append(now.ranks, u)
	}
	now.times[1] = processorTime{ran, delayed}
	return before, now
}

// Who holds up the others is a finding if others have its processor; if it computes, a note.
func TestCompareSlow(t *testing.T) {
	for _, test := range []struct {
		ran, delayed time.Duration
		starved      bool
	}{
		{100 * time.Millisecond, 800 * time.Millisecond, true},
		{800 * time.Millisecond, 100 * time.Millisecond, false},
		{0, 300 * time.Millisecond, false}, // less than half of what the others have waited
	} {
		before, now := looks(test.ran, test.delayed)
		found, note := now.compareSlow(before, []string{"a", "a", "b"})
		if test.starved != (len(found) == 1) || test.starved != (note == "") || !test.starved && !strings.HasSuffix(note, "; it computes") {
			t.Errorf("%v with a processor, %v without: %+v, %q", test.ran, test.delayed, found, note)
		}
		if test.starved && (found[0].Ranks[0] != 1 || !strings.Contains(found[0].Text, "its threads ran for 11 % of the time")) {
			t.Errorf("%+v", found[0])
		}
	}
	before, now := looks(0, 0)
	now.ranks[1] = nil // it is elsewhere
	if w := now.waitTimes(before); w[0] != 900*time.Millisecond || w[1] != -1 {
		t.Errorf("ranks have waited for %v", w)
	}
}

// What left and what arrived are told by rate and by how busy they kept the time.
func TestFlows(t *testing.T) {
	before, now := looks(0, 0)
	before.ranks[0].Flows = []executor.Flow{{To: 2, Flow: wire.Flow{Busy: time.Second, Bytes: 1000}}}
	now.ranks[0].Flows = []executor.Flow{{To: 2, Flow: wire.Flow{Busy: 1500 * time.Millisecond, Bytes: 5000, Rate: 7e3, Full: true}}, {To: 1}}
	left, arrived := now.flows(before)
	want := verdict.Flow{From: 0, To: 2, Rate: 7e3, Moved: 8000, Full: true, Busy: 0.5}
	if len(left) != 1 || left[0] != want || len(arrived) != 0 {
		t.Errorf("left %+v, arrived %+v; want %+v", left, arrived, want)
	}
}

// A row says what a rank is in: its awaited calls, or what it came from.
func TestColumns(t *testing.T) {
	const long = 1500 * time.Millisecond
	for _, test := range []struct {
		state flight.State
		want  string
	}{
		{flight.State{Doing: flight.Outside, Last: "bcast #3", Since: long}, "in no call after bcast #3 | - | 1.5 s"},
		{flight.State{Doing: flight.Inside, Open: []flight.Open{{What: "bcast", Seq: 4, Peers: []int{1, 2}, For: long, Awaited: true}}}, "bcast #4 | 1,2 | 1.5 s"},
		{flight.State{Doing: flight.Inside, Open: []flight.Open{{What: "send", Transfer: true, Awaited: true}, {What: "hidden"}, {What: "bcast", Seq: 4, Peers: []int{1}, Awaited: true}}}, "send and bcast #4 | - | -"},
		{flight.State{Doing: flight.Silent}, flight.Silent.String() + " | - | -"},
	} {
		in, waits, since := columns(&test.state)
		if got := in + " | " + waits + " | " + since; got != test.want {
			t.Errorf("%+v: %q; want %q", test.state, got, test.want)
		}
	}
}

// What only one of two looks has is dropped. A wait ends with its context.
func TestConfirm(t *testing.T) {
	a, b := verdict.Finding{Class: verdict.Late, Ranks: []int{1}}, verdict.Finding{Class: verdict.Late, Ranks: []int{2}}
	if got := confirm([]verdict.Finding{a, b}, []verdict.Finding{b}); len(got) != 1 || got[0].Ranks[0] != 2 {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	if err := sleep(ctx, time.Hour); !errors.Is(err, over) {
		t.Errorf("%v", err)
	}
}

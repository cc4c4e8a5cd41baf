package trace_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock"
)

// pair is a program of two ranks: rank 0 sends, rank 1 hears.
func pair(rank levels.Rank) trace.Program {
	kind := []string{"send", "recv"}[rank]
	return trace.Program{
		{Task: "ib#0", Label: "ib#0 " + kind + " r0>r1 8B", Kind: kind, Level: "i", Bytes: 8, Peer: 1 - rank, Outgoing: rank == 0, After: []int32{1}},
		{Task: "ib#0", Label: fmt.Sprintf("ib#0 join r%d", rank), Kind: "join", Level: "i", Peer: -1},
	}
}

// record keeps so many calls of two steps.
func record(r *trace.Ring, b *trace.Bound, calls int) {
	for seq := range uint32(calls) {
		if !r.Takes(b.Comm, seq) {
			continue
		}
		at := int64(seq) * 100
		n := r.Begin(b, seq, at)
		r.Step(n, 0, 0, at, at+10)
		r.Step(n, 0, 1, at+10, at+20)
		r.End(n, at+30)
	}
}

func file(every, steps, calls, made int) *trace.File {
	p := pair(0)
	b := &trace.Bound{Comm: 7, Members: []levels.Rank{0, 1}, Request: "bcast 8 B", Plan: "p", Bytes: 8, Passes: 1, Whole: &p}
	r := trace.NewRing(every, steps, calls)
	record(r, b, made)
	f := r.File(1000)
	f.Job, f.Nodes, f.Clock = "j", []string{"a", "b"}, "c"
	return f
}

func TestRing(t *testing.T) {
	f := file(1, 16, 4, 3)
	want := []trace.Call{
		{Seq: 0, Begin: 1000, End: 1030, Steps: []trace.Step{{0, 0, 1000, 1010}, {0, 1, 1010, 1020}}},
		{Seq: 1, Begin: 1100, End: 1130, Steps: []trace.Step{{0, 0, 1100, 1110}, {0, 1, 1110, 1120}}},
		{Seq: 2, Begin: 1200, End: 1230, Steps: []trace.Step{{0, 0, 1200, 1210}, {0, 1, 1210, 1220}}},
	}
	if diff := cmp.Diff(want, f.Calls); diff != "" || f.Lost != 0 || len(f.Programs) != 1 || len(f.Kinds) != 1 {
		t.Errorf("%d lost, %d programs, %d kinds, calls -want +got:\n%s", f.Lost, len(f.Programs), len(f.Kinds), diff)
	}
	// Of more than there is room for the last are kept, whole.
	for _, room := range [][2]int{{16, 4}, {8, 64}} {
		f := file(1, room[0], room[1], 50)
		if len(f.Calls) != 4 || f.Calls[0].Seq != 46 || f.Lost != 46 || len(f.Calls[0].Steps) != 2 {
			t.Errorf("room for %v: %+v, %d lost; want the last four whole", room, f.Calls, f.Lost)
		}
	}
}

// A call that has not ended, or failed, is not kept; calls may overlap.
func TestRingOfOpenCalls(t *testing.T) {
	p := pair(0)
	b := &trace.Bound{Members: []levels.Rank{0, 1}, Passes: 1, Whole: &p}
	r := trace.NewRing(1, 0, 0)
	first, second := r.Begin(b, 0, 1), r.Begin(b, 1, 2)
	r.Step(second, 0, 0, 2, 3)
	r.Step(first, 0, 0, 1, 4)
	r.End(second, 5)
	f := r.File(0)
	if len(f.Calls) != 1 || f.Calls[0].Seq != 1 || f.Lost != 1 || !slices.Equal(f.Calls[0].Steps, []trace.Step{{0, 0, 2, 3}}) {
		t.Errorf("%+v, %d lost", f.Calls, f.Lost)
	}
}

// The sample is about one of so many, the same for all who ask, and follows no period.
func TestSample(t *testing.T) {
	var none *trace.Ring
	if none.Takes(0, 0) {
		t.Error("a rank without a trace takes a call")
	}
	for _, every := range []int{1, 2, 16, 1000} {
		r := trace.NewRing(every, 1, 1)
		const calls = 64_000
		for _, period := range []uint32{1, 7, 16} {
			n := 0
			for seq := range uint32(calls) {
				if r.Takes(3, seq*period) {
					n++
				}
			}
			if want := calls / every; n < want*8/10-20 || n > want*12/10+20 {
				t.Errorf("every %d: %d of %d calls with period %d, want about %d", every, n, calls, period, want)
			}
		}
	}
}

func TestFile(t *testing.T) {
	f := file(1, 0, 0, 5)
	f.Ahead = clock.Map{Fixes: []clock.Fix{{At: 1, Ahead: 2, Error: 3}}, PPM: 100}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := trace.ReadFile("x", b.Bytes())
	if diff := cmp.Diff(f, got); err != nil || diff != "" {
		t.Errorf("%v, -written +read:\n%s", err, diff)
	}
}

// What a file says is believed only as far as it can be used.
func TestFileRefuses(t *testing.T) {
	for what, spoil := range map[string]func(f *trace.File){
		"format 9":      func(f *trace.File) { f.Format = 9 },
		"rank 2 of 2":   func(f *trace.File) { f.Rank = 2 },
		"rank -1":       func(f *trace.File) { f.Rank = -1 },
		"level \"\"":    func(f *trace.File) { f.Programs[0][0].Level = "" },
		"next [9]":      func(f *trace.File) { f.Programs[0][0].After = []int32{9} },
		"peer -2":       func(f *trace.File) { f.Programs[0][0].Peer = -2 },
		"peer 2 of 2":   func(f *trace.File) { f.Programs[0][0].Peer = 2 },
		"in the file":   func(f *trace.File) { f.Kinds[0].Rank = 1 },
		"member 2":      func(f *trace.File) { f.Kinds[0].Members[1] = 2 },
		"program 1":     func(f *trace.File) { f.Kinds[0].Whole = 1 },
		"kind 1 of 1":   func(f *trace.File) { f.Calls[0].Kind = 1 },
		"step [0 9":     func(f *trace.File) { f.Calls[0].Steps[0][1] = 9 },
		"step [1 0":     func(f *trace.File) { f.Calls[0].Steps[0][0] = 1 },
		"step [-1":      func(f *trace.File) { f.Calls[0].Steps[0][0] = -1 },
		"not in order":  func(f *trace.File) { f.Ahead.Fixes = []clock.Fix{{At: 2}, {At: 1}} },
		"from 1000 to ": func(f *trace.File) { f.Calls[0].End = 5 },
	} {
		f := file(1, 0, 0, 2)
		spoil(f)
		var b bytes.Buffer
		if err := f.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := trace.ReadFile("x", b.Bytes()); err == nil || !strings.HasPrefix(err.Error(), "x is no trace of a rank: ") || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q", err, what)
		}
	}
}

// FuzzReadFile: whatever a file holds, what is returned can be used.
func FuzzReadFile(f *testing.F) {
	var b bytes.Buffer
	if err := file(1, 0, 0, 2).Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(_ *testing.T, data []byte) {
		got, err := trace.ReadFile("x", data)
		if err != nil {
			return
		}
		for _, c := range got.Calls {
			k := got.Kinds[c.Kind]
			for _, s := range c.Steps {
				got.Programs[k.Program(s[0])].Describe(int32(s[1]))
			}
		}
	})
}

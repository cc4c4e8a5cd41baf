package flight_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// record makes a recording of a rank that stands still in its third call.
func record(t testing.TB, r *flight.Ring) {
	t.Helper()
	for seq := range uint32(3) {
		r.Begin(0, seq, "allreduce 1024 f32 sum", 4096)
		r.Add(flight.Event{Kind: flight.Sent, Message: 1, Seq: seq, Peer: 2, Edge: 5, Bytes: 64})
		if seq < 2 {
			r.End(0, seq, 1, false)
		}
	}
	r.Tick()
	r.Wait(flight.Event{Seq: 2, Peer: 4, Edge: 1, Bytes: 64}, 100*time.Millisecond, "r4: ib#3 recv r4>r3 64B")
}

func TestRecording(t *testing.T) {
	r := flight.New(3, 8, 0)
	record(t, r)
	rec := r.Recording("x")
	var kinds []string
	for _, e := range rec.Events {
		kinds = append(kinds, e.Kind.String())
	}
	if got, want := strings.Join(kinds, " "), "begin sent end begin sent end begin sent wait"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	want := flight.Event{Seq: 1, Kind: flight.Sent, Message: 1, Peer: 2, Edge: 5, Bytes: 64}
	if diff := cmp.Diff(want, rec.Events[4], cmpopts.IgnoreFields(flight.Event{}, "Time"), cmpopts.IgnoreUnexported(flight.Event{})); diff != "" {
		t.Error(diff)
	}
	open := rec.Unfinished()
	if len(open) != 1 || open[0].Seq != 2 || open[0].Waits != "r4: ib#3 recv r4>r3 64B" || open[0].Request != "allreduce 1024 f32 sum" {
		t.Errorf("unfinished %+v", open)
	}
	if rec.Rank != 3 || rec.Ranks != 8 || rec.Total != 9 || rec.Closed || rec.PID != os.Getpid() {
		t.Errorf("%+v", rec)
	}
	r.Move(0, 2)
	if open := r.Recording("x").Unfinished(); open[0].Waits != "" {
		t.Errorf("it moves, and waits for %s", open[0].Waits)
	}
}

// The ring keeps the last events; calls are kept apart from it, so that the one
// that many messages ago began is not forgotten.
func TestRingTurns(t *testing.T) {
	r := flight.New(0, 2, 5)
	r.Begin(7, 100, "bcast 1 f32 root 0", 4)
	for i := range int32(1000) {
		r.Add(flight.Event{Kind: flight.Received, Message: 2, Edge: i})
	}
	rec := r.Recording("x")
	if len(rec.Events) != 8 || rec.Total != 1001 {
		t.Errorf("%d events of %d", len(rec.Events), rec.Total)
	}
	for i, e := range rec.Events {
		if want := int32(1000 - len(rec.Events) + i); e.Edge != want {
			t.Errorf("event %d is number %d, want %d", i, e.Edge, want)
		}
	}
	if open := rec.Unfinished(); len(open) != 1 || open[0].Comm != 7 || open[0].Seq != 100 {
		t.Errorf("unfinished %+v", open)
	}
	for seq := uint32(101); seq < 300; seq++ {
		r.Begin(7, seq, "barrier", 0)
	}
	if n := len(r.Recording("x").Calls); n != 64 {
		t.Errorf("%d calls are kept", n)
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for range 2 { // the second replaces the first
		r, err := flight.Create(path, 3, 8, 0)
		if err != nil {
			t.Fatal(err)
		}
		record(t, r)
		data := contents(t, path) // mapped: it is there at once
		rec, err := flight.ReadRecording(path, data)
		if err != nil || rec.Total != 9 || rec.Closed {
			t.Fatalf("%v, %+v", err, rec)
		}
		r.Break(0, 4, errors.New("rank 4 failed: no power"))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r.Add(flight.Event{Kind: flight.Sent}) // nothing, and no fault
		r.Tick()
		if r.Recording("x") != nil {
			t.Error("a closed ring has a recording")
		}
		rec, err = flight.ReadRecording(path, contents(t, path))
		if err != nil || !rec.Closed || rec.Failure != "rank 4 failed: no power" {
			t.Fatalf("%v, %+v", err, rec)
		}
	}
	other := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(other, []byte("a thesis"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		other:                             "is no recording",
		filepath.Dir(other):               "no regular file",
		filepath.Join(other, "x"):         "not a directory",
		filepath.Join(path, "no", "such"): "not a directory",
		"/nosuch/a":                       "no such file",
	} {
		if _, err := flight.Create(path, 0, 1, 0); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
	if string(contents(t, other)) != "a thesis" {
		t.Error("a file that is no recording was changed")
	}
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// image is the bytes of a recording.
func image(t testing.TB, n int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	r, err := flight.Create(path, 3, 8, n)
	if err != nil {
		t.Fatal(err)
	}
	record(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return contents(t, path)
}

func TestReadErrors(t *testing.T) {
	good := image(t, 8)
	change := func(at int, b byte) []byte {
		bad := append([]byte(nil), good...)
		bad[at] = b
		return bad
	}
	for i, test := range []struct {
		data []byte
		want string
	}{
		{nil, "offset 0: the file ends"},
		{good[:100], "offset 100: the file ends in the header of 512 bytes"},
		{[]byte(strings.Repeat("text ", 200)), `offset 0: begins with "text tex"`},
		{change(8, 9), "offset 8: version 9; this program reads version 3"},
		{change(12, 8), "offset 12: rank 8 of 8"},
		{change(32, 7), "offset 32: a ring of 7 events"},
		{change(36, 7), "offset 36: 7 calls"},
		{change(61, 7), "offset 60: a failure of 1792 bytes"},
		{good[:len(good)-1], fmt.Sprintf("offset %d: the file has %d bytes", len(good)-1, len(good)-1)},
		{change(512+37, 7), "offset 548: texts of"},
	} {
		_, err := flight.ReadRecording("a.rec", test.data)
		if err == nil || !strings.Contains(err.Error(), "recording a.rec: "+test.want) {
			t.Errorf("%d: error %v, want %s", i, err, test.want)
		}
	}
}

// Calls in a row share a reading of the clock; one that waits gets the time of the
// next, with its events, so that it doesn't seem to have begun before the caller
// computed.
func TestClockIsSharedByCallsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := flight.New(0, 1, 0)
		for seq := range uint32(40) {
			clocktest.Pass(time.Millisecond)
			r.Begin(0, seq, "barrier", 0)
			r.End(0, seq, 0, false)
		}
		times := map[time.Duration]bool{}
		for _, c := range r.Recording("calls").Calls {
			times[c.Begun] = true
		}
		if len(times) < 3 || len(times) > 4 {
			t.Errorf("40 calls in a row have %d different times, want about one for each 16", len(times))
		}
		clocktest.Pass(time.Second) // the caller computes
		r.Begin(0, 40, "barrier", 0)
		r.Add(flight.Event{Kind: flight.Sent, Message: 1, Seq: 40})
		r.Tick() // it waits
		rec := r.Recording("wait")
		want := 1040 * time.Millisecond
		if got := rec.Calls[len(rec.Calls)-1].Begun; got != want {
			t.Errorf("the call that waits began at %v, want %v", got, want)
		}
		for _, e := range rec.Events[len(rec.Events)-2:] {
			if time.Duration(e.Time) != want {
				t.Errorf("%v of the call that waits is at %v, want %v", e.Kind, time.Duration(e.Time), want)
			}
		}
		if e := rec.Events[len(rec.Events)-3]; time.Duration(e.Time) >= time.Second {
			t.Errorf("%v of the call before moved to %v", e.Kind, time.Duration(e.Time))
		}
	})
}

// FuzzReadRecording changes the parts of a recording, which is far longer than they are: the rest are
// zeros. cut takes bytes from its end.
func FuzzReadRecording(f *testing.F) {
	good := image(f, 8)
	const rings = 8 * 48
	head, call, ring := bytes.TrimRight(good[:512], "\x00"), bytes.TrimRight(good[512:768], "\x00"), bytes.TrimRight(good[len(good)-rings:], "\x00")
	f.Add(head, call, ring, uint16(0))
	f.Add(head, call, ring, uint16(3))
	f.Add(head[:8], []byte(nil), []byte(nil), uint16(len(good)-8))
	f.Fuzz(func(t *testing.T, head, call, ring []byte, cut uint16) {
		data := make([]byte, len(good))
		copy(data, head)
		copy(data[512:], call)
		copy(data[len(good)-rings:], ring)
		data = data[:len(good)-min(int(cut), len(good))]
		rec, err := flight.ReadRecording("x", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "recording x: offset ") {
				t.Errorf("error %v has no place", err)
			}
			return
		}
		if uint64(len(rec.Events)) > rec.Total || len(rec.Calls) > 72 {
			t.Errorf("%d of %d events, %d calls", len(rec.Events), rec.Total, len(rec.Calls))
		}
		var b strings.Builder
		if err := flight.Print(&b, []*flight.Recording{rec, rec}, 5); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' }) {
				t.Errorf("line %q", line)
			}
		}
	})
}

func TestRecordingAllocatesNothing(t *testing.T) {
	r := flight.New(0, 2, 0)
	seq := uint32(0)
	if n := testing.AllocsPerRun(100, func() {
		r.Begin(0, seq, "barrier", 0)
		r.Add(flight.Event{Kind: flight.Sent})
		r.End(0, seq, 0, false)
		seq++
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

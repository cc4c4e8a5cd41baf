package flight_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

const second = time.Second

func TestStateText(t *testing.T) {
	open := flight.Open{What: "barrier", Seq: 7, For: 1500 * time.Millisecond, Awaited: true}
	receive := flight.Open{What: "receive from rank 1, tag 5", Transfer: true, Awaited: true}
	started := flight.Open{What: "bcast", Seq: 8}
	for _, c := range []struct {
		s    flight.State
		want string
	}{
		{flight.State{Doing: flight.Outside}, "in no call"},
		{flight.State{Doing: flight.Outside, Last: "barrier #7", Since: 2 * second}, "in no call after barrier #7, at most 2.0 s ago"},
		{flight.State{Doing: flight.Outside, At: "main.load load.go:88"}, "in no call, at main.load load.go:88"},
		{flight.State{Doing: flight.Outside, Votes: "agree"}, "in agree"},
		{
			flight.State{Doing: flight.Outside, Last: "barrier #7", Elsewhere: &flight.Elsewhere{Call: "MPI_Recv", For: second}, At: "main prog.c:9"},
			"in MPI_Recv, for 1.0 s, at main prog.c:9",
		},
		{flight.State{Doing: flight.Inside, Open: []flight.Open{open}, Elsewhere: &flight.Elsewhere{Call: "MPI_Recv"}}, "in barrier #7, for 1.5 s"},
		{flight.State{Doing: flight.Outside, Votes: "agree", Last: "barrier #7", At: "x.go:1"}, "in agree after barrier #7, at x.go:1"},
		{flight.State{Doing: flight.Inside, Open: []flight.Open{open, started}}, "in barrier #7, for 1.5 s"},
		{flight.State{Doing: flight.Inside, Open: []flight.Open{open, receive}, At: "x.go:1"}, "in barrier #7, for 1.5 s and in receive from rank 1, tag 5, at x.go:1"},
		{
			flight.State{Doing: flight.Inside, Open: []flight.Open{receive, receive, receive, receive, open, open}},
			strings.Repeat("in receive from rank 1, tag 5 and ", 4) + "2 more",
		},
		{flight.State{Doing: flight.Stopped, Open: []flight.Open{open}}, "stopped in barrier #7, for 1.5 s"},
		{flight.State{Doing: flight.Gone, Last: "barrier #7"}, "dead in no call after barrier #7"},
		{flight.State{Doing: flight.Left, Last: "barrier #7"}, "closed after barrier #7"},
		{flight.State{Doing: flight.Computing, Open: []flight.Open{open}}, "in an operation of its program"},
		{flight.State{}, "doing(0)"},
	} {
		if got := c.s.String(); got != c.want {
			t.Errorf("%+v\n got %s\nwant %s", c.s, got, c.want)
		}
	}
}

// A rank has come to a call if it has called later ones, also where the numbers begin anew.
func TestHasCome(t *testing.T) {
	s := flight.State{Doing: flight.Outside, Called: []flight.Called{{Comm: 1, Calls: 5}, {Comm: 2, Calls: 3}}}
	for _, c := range []struct {
		comm uint64
		seq  uint32
		come bool
	}{{1, 4, true}, {1, 5, false}, {1, 1<<32 - 1, true}, {2, 3, false}, {2, 2, true}, {3, 0, false}} {
		if come, known := s.HasCome(c.comm, c.seq); come != c.come || !known {
			t.Errorf("call %d on %d: %v, %v", c.seq, c.comm, come, known)
		}
	}
	s.Doing = flight.Computing
	if come, known := s.HasCome(1, 4); !come || !known {
		t.Errorf("of a rank in an operation: %v, %v", come, known)
	}
	if _, known := s.HasCome(3, 0); known {
		t.Error("a rank in an operation is known not to have come to a communicator that it may be making")
	}
	for _, d := range []flight.Doing{flight.Silent, flight.Stopped, flight.Gone} {
		s.Doing = d
		if _, known := s.HasCome(1, 4); known {
			t.Errorf("of a %v rank it is known", d)
		}
	}
}

// A send or receive that waits has a place until it ends; there are eight. What the rank is in follows from
// its recording.
func TestTransfersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := flight.New(3, 8, 0)
		r.Begin(0, 6, "bcast", 8)
		clocktest.Pass(second)
		r.Tick()
		r.End(0, 6, 0, false)
		var places []uint8
		for range 9 {
			places = append(places, r.WaitTransfer(flight.Event{Peer: 1, Edge: 5, Bytes: 64}, second/2, "receive from rank 1, tag 5"))
		}
		if diff := cmp.Diff([]uint8{1, 2, 3, 4, 5, 6, 7, 8, 0}, places); diff != "" {
			t.Error(diff)
		}
		for _, p := range places[1:] {
			r.EndTransfer(p)
		}
		clocktest.Pass(second)
		r.Tick()
		if what, seq, ago, ok := r.LastEnded(); what != "bcast" || seq != 6 || ago != second || !ok {
			t.Errorf("last ended %s #%d, %v ago, %v", what, seq, ago, ok)
		}
		rec := r.Recording("x")
		s := rec.State()
		if got, want := s.String(), "in receive from rank 1, tag 5"; got != want || s.Last != "bcast #6" || s.Since != second {
			t.Errorf("%s after %s, %v ago; want %s", got, s.Last, s.Since, want)
		}
		var b strings.Builder
		if err := flight.Print(&b, []*flight.Recording{rec}, 1); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"wait  for rank 1  tag 5, 64 bytes", "rank 3: receive from rank 1, tag 5: waits since -1.500000s"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("printed %s; want %s", &b, want)
			}
		}
	})
}

func TestCommName(t *testing.T) {
	for comm, want := range map[uint64]string{
		0: "world", 1<<42 | 17: "r0.17", 4<<42 | 5: "r3.5", 12: "12", 1 << 63: "9223372036854775808",
	} {
		if got := flight.CommName(comm); got != want {
			t.Errorf("%#x is %s, want %s", comm, got, want)
		}
	}
}

// A state reads back from JSON as it was, with words for what the rank is doing.
func TestStateAsJSON(t *testing.T) {
	for d := range flight.Left + 1 {
		s := flight.State{Rank: 3, Doing: d, Since: 5, Open: []flight.Open{{Comm: 1, What: "barrier", For: 7}}, Near: []flight.State{{Rank: 4, Doing: flight.Gone}}}
		text, err := json.Marshal(s)
		if err != nil || !strings.Contains(string(text), fmt.Sprintf(`"doing":%q`, d)) {
			t.Errorf("%v: %s, %v", d, text, err)
		}
		var back flight.State
		if err := json.Unmarshal(text, &back); err != nil || !cmp.Equal(back, s) {
			t.Errorf("%s reads as %+v, %v", text, back, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"doing":"nothing"}`), &flight.State{}); err == nil {
		t.Error("an unknown word was read")
	}
}

package local

import (
	"fmt"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// The link of a node takes one message after the other, in each direction.
func TestNetwork(t *testing.T) {
	topology := tasktest.Topology(t, "a:2,b:2,c:1")
	const ms = time.Millisecond
	n := NewNetwork(topology, 1e6, 5*ms) // a byte takes 1 µs
	now := time.Unix(100, 0)
	bytes := func(d time.Duration) int64 { return d.Microseconds() - frameOverhead }
	for i, c := range []struct {
		from, to levels.Rank
		takes    time.Duration
		want     time.Duration // after now; 0: at once
	}{
		{0, 1, 10 * ms, 0},
		{0, 2, 10 * ms, 15 * ms},
		{1, 4, 10 * ms, 25 * ms}, // behind that of rank 0, which shares the link
		{4, 3, 2 * ms, 17 * ms},  // behind that of rank 0, on the way in
		{2, 0, 10 * ms, 15 * ms}, // the other direction is free
	} {
		due := n.Due(c.from, c.to, bytes(c.takes), now)
		got := due.Sub(now)
		if due.IsZero() {
			got = 0
		}
		if got != c.want {
			t.Errorf("message %d arrives after %v, want %v", i, got, c.want)
		}
	}
	if due := NewNetwork(topology, 0, ms).Due(0, 4, 1<<30, now); due != now.Add(ms) {
		t.Errorf("without a limit it arrives after %v", due.Sub(now))
	}
}

// steady delays messages to rank 0 longer than others.
type steady struct{ short, long time.Duration }

func (s steady) Due(_, to levels.Rank, _ int64, now time.Time) time.Time {
	if to == 0 {
		return now.Add(s.long)
	}
	return now.Add(s.short)
}

// listener keeps what a rank hears, and when.
type listener struct {
	wire.Sink
	heard string
	at    time.Time
}

func (l *listener) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	l.heard += fmt.Sprintf("%d from r%d: %s; ", m.Edge, from, payload)
	l.at = time.Now()
}

// Messages come in order and not before they are due, though one that was sent later may be due sooner elsewhere.
func TestClock(t *testing.T) {
	shaper := steady{2 * time.Millisecond, 30 * time.Millisecond}
	h := &hub{inboxes: []*inbox{newInbox(), newInbox()}, shaper: shaper}
	h.clock = newClock(h)
	defer h.clock.stop()
	links := []*link{{inbox: h.inboxes[0], hub: h, rank: 0}, {inbox: h.inboxes[1], hub: h, rank: 1}}
	var hears [2]listener
	payload := []byte("abc")
	began := time.Now()
	links[1].Post(0, &wire.Message{Edge: 1}, payload)
	links[1].Post(0, &wire.Message{Edge: 2}, nil)
	links[0].Post(1, &wire.Message{Edge: 3}, payload)
	clear(payload) // it has been copied
	want := [2]string{"1 from r1: abc; 2 from r1: ; ", "3 from r0: abc; "}
	clocktest.Until(t, "both have heard all", func() bool {
		for r, l := range links {
			l.Poll(&hears[r])
		}
		return len(hears[0].heard) >= len(want[0]) && len(hears[1].heard) >= len(want[1])
	})
	for r, least := range []time.Duration{shaper.long, shaper.short} {
		if took := hears[r].at.Sub(began); hears[r].heard != want[r] || took < least {
			t.Errorf("rank %d heard %q after %v, want %q after %v", r, hears[r].heard, took, want[r], least)
		}
	}
}

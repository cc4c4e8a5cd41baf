package faulty

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// under is a link with messages to be heard, and what was said over it.
type under struct {
	wire.OneProcess
	wire.Bell
	come  []int32 // edges of messages, each from the rank that is its remainder of 3
	posts int
}

func (u *under) Post(levels.Rank, *wire.Message, []byte)            { u.posts++ }
func (u *under) Put(levels.Rank, *wire.Message, []byte, int32) bool { u.posts++; return true }
func (u *under) Flush(wire.Sink) bool                               { return true }
func (u *under) Forget(wire.Scope, wire.Sink)                       {}
func (u *under) Poll(s wire.Sink) bool {
	payload := []byte{0}
	for _, edge := range u.come {
		payload[0] = byte(edge)
		s.Deliver(levels.Rank(edge%3), &wire.Message{Kind: wire.Eager, Edge: edge}, payload)
	}
	did := len(u.come) > 0
	u.come = nil
	return did
}

// heardBy keeps the edges that come from each rank.
type heardBy struct {
	wire.Sink
	t     *testing.T
	edges [3][]int32
}

func (h *heardBy) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	if payload[0] != byte(m.Edge) {
		h.t.Errorf("message %d has the payload of %d", m.Edge, payload[0])
	}
	h.edges[from] = append(h.edges[from], m.Edge)
}

func newFaulty(u *under, f Faults) *Link {
	u.Listen(func() bool { return len(u.come) > 0 })
	return New(Under{Link: u, Sleeper: u, Memory: u}, 1, 3, f)
}

// Messages come late, all of them, and in the order of each rank. The same seed gives the same delays.
func TestHold(t *testing.T) {
	var polls []int
	for range 2 {
		u, h := &under{}, &heardBy{t: t}
		f := newFaulty(u, Faults{Seed: 7, Hold: true})
		for edge := range int32(60) {
			u.come = append(u.come, edge)
		}
		n := 1
		for f.Poll(h); f.waiting > 0; n++ {
			if f.Arm() {
				t.Fatal("the rank sleeps on messages that are held")
			}
			f.Poll(h)
		}
		polls = append(polls, n)
		for from, edges := range h.edges {
			if len(edges) != 20 || !slices.IsSorted(edges) {
				t.Errorf("from rank %d came %v", from, edges)
			}
		}
		if !f.Arm() {
			t.Error("the rank can't sleep with nothing held")
		}
	}
	if polls[0] < 2 || polls[0] != polls[1] {
		t.Errorf("all had come after %v polls", polls)
	}
}

// Every fifth message is followed by one that came before, and At is called once.
func TestRepeat(t *testing.T) {
	u, h := &under{}, &heardBy{t: t}
	calls := make(chan levels.Rank, 10)
	f := newFaulty(u, Faults{Seed: 7, Repeat: 5, After: 8, At: func(r levels.Rank) { calls <- r }})
	for edge := range int32(30) {
		u.come = append(u.come, edge)
	}
	f.Poll(h)
	f.Started.Wait()
	if len(calls) != 1 || <-calls != 1 {
		t.Errorf("At was not called once, with rank 1")
	}
	times := map[int32]int{}
	for _, edges := range h.edges {
		for _, edge := range edges {
			times[edge]++
		}
	}
	total := 0
	for edge := range int32(30) {
		if times[edge] == 0 {
			t.Errorf("message %d has not come", edge)
		}
		total += times[edge]
	}
	if total != 36 {
		t.Errorf("%d messages came, want 30 and 6 again", total)
	}
}

// A dead rank says and hears nothing. Say may take a message, and Touch sees each look at memory.
func TestKill(t *testing.T) {
	u, h := &under{}, &heardBy{t: t}
	f := newFaulty(u, Faults{})
	f.Say = func(to levels.Rank, _ *wire.Message, _ []byte) bool { return to == 2 }
	var touched []levels.Rank
	f.Touch = func(from levels.Rank) { touched = append(touched, from) }
	f.Post(0, &wire.Message{}, nil)
	f.Post(2, &wire.Message{}, nil)
	f.Holds(2, unsafe.Pointer(u), 1)
	_ = f.Read(0, 0, nil)
	if u.posts != 1 || !slices.Equal(touched, []levels.Rank{2, 0}) {
		t.Errorf("%d messages were said by the link, memory of %v was touched", u.posts, touched)
	}
	f.Kill()
	u.come = []int32{1, 2}
	f.Post(0, &wire.Message{}, nil)
	if f.Put(0, &wire.Message{}, nil, 0) || f.Poll(h) || f.Flush(h) || u.posts != 1 || !f.Arm() {
		t.Errorf("a dead rank says something, %d messages in all, or hears %v", u.posts, h.edges)
	}
}

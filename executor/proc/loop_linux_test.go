package proc

import (
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// echo is an engine that posts again what it hears, once.
type echo struct {
	wire.Sink
	link  *loopLink
	heard string
}

func (e *echo) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	e.heard += fmt.Sprintf("r%d %v %s; ", from, m.Kind, payload)
	if m.Kind == wire.Eager {
		e.link.Post(&wire.Message{Kind: wire.Notify}, payload)
	}
}

// A rank hears what it says to itself in order, and what it answers at the next poll.
func TestLoop(t *testing.T) {
	l := &loopLink{me: 2}
	e := &echo{link: l}
	if l.Poll(e) || l.some() {
		t.Error("something came from nobody")
	}
	payload := []byte("ab")
	l.Post(&wire.Message{Kind: wire.Eager, Size: 2}, payload)
	place := make([]byte, 3)
	if !l.Put(&wire.Message{Kind: wire.Data, Size: 3, Addr: wire.Start(place)}, []byte("xyz"), 1) || string(place) != "xyz" {
		t.Errorf("%q is in its place", place)
	}
	clear(payload) // it has been copied
	if l.Flush(e) || l.IsBusy() || !l.some() {
		t.Error("a message waits for a flush")
	}
	if !l.Poll(e) || e.heard != "r2 eager ab; r2 data ; " {
		t.Errorf("heard %q", e.heard)
	}
	if e.heard = ""; !l.Poll(e) || e.heard != "r2 notify ab; " {
		t.Errorf("then heard %q", e.heard)
	}
	if l.Poll(e) {
		t.Error("something came twice")
	}
}

package proc

import (
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// loopLink is the link of a process to itself. A posted message has arrived; a poll
// hands it over. A large payload does not pass through it: all addresses are this
// process's own.
//
// The engine's lock guards all of it. The call that posted wakes a sleeping driver, as
// after any post.
type loopLink struct {
	me    levels.Rank
	box   wire.Batch // posted messages
	taken wire.Batch // those being handed over: their receivers may post more
}

var _ line = (*loopLink)(nil)

// Post keeps the message for the next Poll.
func (l *loopLink) Post(m *wire.Message, payload []byte) { l.box.Add(l.me, m, payload) }

// Put copies straight to the receive's buffer: its acceptance has the address.
func (l *loopLink) Put(m *wire.Message, src []byte, _ int32) bool {
	copy(wire.BytesAt(m.Addr, 0, int64(len(src))), src)
	l.Post(m, nil)
	return true
}

// some reports whether there is a message.
func (l *loopLink) some() bool { return !l.box.IsEmpty() }

// Poll hands over the messages posted before the call.
func (l *loopLink) Poll(s wire.Sink) bool {
	if !l.some() {
		return false
	}
	l.box, l.taken = l.taken, l.box
	l.taken.Empty(s.Deliver)
	return true
}

// Flush has nothing to do, and so the link is never busy.
func (l *loopLink) Flush(wire.Sink) bool { return false }

// IsBusy returns false: posted messages have left.
func (l *loopLink) IsBusy() bool { return false }

// Forget has nothing to do: a put is over when it returns.
func (l *loopLink) Forget(wire.Scope, wire.Sink) {}

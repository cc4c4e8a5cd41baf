package executor

import "github.com/tierflow/tierflow/levels"

// loopLink is the link of a process to itself. What is posted has arrived; a poll
// hands it over. A large payload does not pass through it: all addresses are this
// process's own.
//
// The engine's lock guards all of it. A driver that sleeps meanwhile is woken by the
// call that posted, see [Endpoint.dispatch].
type loopLink struct {
	me    levels.Rank
	box   batch // what was posted
	taken batch // what is being handed over: that may post more
}

var _ link = (*loopLink)(nil)

func (l *loopLink) post(m *message, payload []byte) { l.box.add(l.me, m, payload) }

// put copies straight to the receive's buffer, whose address its acceptance has.
func (l *loopLink) put(m *message, src []byte, _ int32) bool {
	copy(bytesAt(m.addr, 0, int64(len(src))), src)
	l.post(m, nil)
	return true
}

// some reports whether there is a message.
func (l *loopLink) some() bool { return len(l.box.items) > 0 }

// poll hands over what was posted before it was called.
func (l *loopLink) poll(s sink) bool {
	if !l.some() {
		return false
	}
	l.box, l.taken = l.taken, l.box
	payload := l.taken.payload
	for i := range l.taken.items {
		it := &l.taken.items[i]
		s.deliver(it.from, &it.message, payload[:it.size])
		payload = payload[it.size:]
	}
	l.taken.reset()
	return true
}

// flush has nothing to do, and so the link is never busy.
func (l *loopLink) flush(sink) bool { return false }

func (l *loopLink) busy() bool { return false }

// forget has nothing to do: a put is over when it returns.
func (l *loopLink) forget(scope, sink) {}

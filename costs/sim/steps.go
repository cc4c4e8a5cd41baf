package sim

import (
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/submodules"
)

// execute does a step whose predecessors have ended, or as much of it as can be done
// now.
func (e *engine) execute(r *rank, id int32) {
	s := &r.form.steps[id]
	if e.watch != nil {
		e.watch.begin(r, id)
	}
	e.work(r, e.prices.step)
	switch s.kind {
	case submodules.SendStep:
		e.send(r, id, s)
	case submodules.RecvStep:
		e.recv(r, id, s)
	case submodules.CopyStep:
		e.compute(r, s, e.prices.copy, 2)
		e.end(r, id)
	case submodules.ReduceStep:
		e.compute(r, s, e.prices.reduce, 3)
		e.end(r, id)
	case submodules.ShareStep:
		if e.prices.unreadable {
			e.move(r, s.bytes, e.prices.copy, 2)
		}
		e.end(r, id)
	case submodules.NotifyStep:
		e.tell(r, s, notify)
		e.end(r, id)
	case submodules.AwaitStep:
		r.flags[id] |= reached
		if r.flags[id]&arrived != 0 {
			e.end(r, id)
		}
	default: // a join
		e.end(r, id)
	}
}

// compute keeps a rank busy with a copy or a reduction.
func (e *engine) compute(r *rank, s *step, at rate, times int64) {
	if s.reads > 0 {
		e.work(r, Time(s.reads)*e.prices.peerCopy)
		at += rate(s.reads) * e.prices.peerByte
	}
	e.move(r, s.bytes, at, times)
}

// end completes a step and makes ready what waited for it only.
func (e *engine) end(r *rank, id int32) {
	r.fresh = 0
	r.flags[id] |= ended
	if e.watch != nil {
		e.watch.end(r, id)
	}
	next := r.form.after(id)
	for i := len(next) - 1; i >= 0; i-- {
		n := next[i]
		r.pending[n]--
		if r.pending[n] == 0 {
			r.ready = append(r.ready, n)
			if e.log != nil {
				e.log.release(r, n)
			}
		}
	}
	r.left--
	e.counts.Steps++
}

// isEager reports whether the message of a step goes without credit, as long as the
// budget allows.
func (e *engine) isEager(r *rank, s *step) bool {
	if s.bytes <= e.prices.limits.EagerMax {
		return true
	}
	lead := r.pairs[r.seat.conns[s.peer]].lead
	if s.kind == submodules.SendStep {
		return lead.CanSend(s.edge)
	}
	return lead.CanReceive(s.edge)
}

// send moves the message of a step, or lets it wait for credit or budget.
func (e *engine) send(r *rank, id int32, s *step) {
	switch r.pairs[r.seat.conns[s.peer]].flow.Choose(s.bytes, r.flags[id]&credited != 0, e.isEager(r, s)) {
	case flow.Direct:
		e.sendPayload(r, id, s, data)
	case flow.Eager:
		e.sendPayload(r, id, s, eager)
	case flow.Ask:
		if r.flags[id]&reached == 0 {
			e.tell(r, s, want)
			r.flags[id] |= wanted
			r.waiting = append(r.waiting, id)
		}
		r.flags[id] |= reached
	default:
		r.flags[id] |= reached
	}
}

// sendPayload moves the message of a step. What goes without credit has been charged.
func (e *engine) sendPayload(r *rank, id int32, s *step, kind messageKind) {
	r.flags[id] |= reached | leaving
	m := e.messageTo(r, s, kind)
	m.bytes, m.own = s.bytes, id
	m.isBulk = kind == data || s.bytes > e.prices.limits.EagerMax
	e.counts.Bytes += s.bytes
	if e.launch(r, r.seat.conns[s.peer], m) {
		e.end(r, id)
	}
}

// messageTo returns a message for the step at the other end of a step's edge.
func (e *engine) messageTo(r *rank, s *step, kind messageKind) message {
	peer := e.job.seat(r.seat.homes[s.peer], r.pass).form
	at := &peer.in
	if kind == credit {
		at = &peer.out
	}
	return message{kind: kind, step: at.at(r.seat.backs[s.peer], s.edge), own: -1, pass: int32(r.pass)}
}

// tell sends a message without payload to the other end of a step's edge.
func (e *engine) tell(r *rank, s *step, kind messageKind) {
	e.launch(r, r.seat.conns[s.peer], e.messageTo(r, s, kind))
}

// recv takes what came early, else gives credit where the sender needs it.
func (e *engine) recv(r *rank, id int32, s *step) {
	r.flags[id] |= reached
	switch {
	case r.flags[id]&arrived != 0:
		e.move(r, s.bytes, e.prices.copy, 2) // from where it was kept
		e.take(r, id, s)
	case r.flags[id]&wanted != 0 || !e.isEager(r, s):
		e.tell(r, s, credit)
	}
}

// take ends a recv with the payload of an eager message.
func (e *engine) take(r *rank, id int32, s *step) {
	c := r.seat.conns[s.peer]
	if r.pairs[c].flow.Consume(s.bytes) {
		e.launch(r, c, message{kind: giveBack, step: -1, own: -1, pass: int32(r.pass)})
	}
	e.end(r, id)
}

// resume sends the messages that waited for budget to a conn, which has given some back.
func (e *engine) resume(r *rank, c int32) {
	if len(r.waiting) == 0 {
		return
	}
	rest := r.waiting[:0]
	for _, id := range r.waiting {
		s := &r.form.steps[id]
		switch {
		case r.flags[id]&credited != 0:
		case r.seat.conns[s.peer] == c && r.pairs[c].flow.Charge(s.bytes):
			e.sendPayload(r, id, s, eager)
		default:
			rest = append(rest, id)
		}
	}
	r.waiting = rest
}

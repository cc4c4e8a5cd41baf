package sim

import (
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/submodules"
)

// executeStep does a step, or as much of it as can be done now. Its predecessors have ended.
func (e *engine) executeStep(r *rank, id int32) {
	s := &r.form.steps[id]
	if e.watch != nil {
		e.watch.noteBegin(r, id)
	}
	e.keepBusy(r, e.prices.step)
	switch s.kind {
	case submodules.SendStep:
		e.sendStep(r, id, s)
	case submodules.RecvStep:
		e.recvStep(r, id, s)
	case submodules.CopyStep:
		e.computeStep(r, s, e.prices.copy, 2)
		e.endStep(r, id)
	case submodules.ReduceStep:
		e.computeStep(r, s, e.prices.reduce, 3)
		e.endStep(r, id)
	case submodules.ShareStep:
		if e.prices.unreadable {
			e.moveBytes(r, s.bytes, e.prices.copy, 2)
		}
		e.endStep(r, id)
	case submodules.NotifyStep:
		e.sendControl(r, s, notify)
		e.endStep(r, id)
	case submodules.AwaitStep:
		r.flags[id] |= reached
		if r.flags[id]&arrived != 0 {
			e.endStep(r, id)
		}
	default: // a join
		e.endStep(r, id)
	}
}

// computeStep keeps a rank busy with a copy or a reduction.
func (e *engine) computeStep(r *rank, s *step, at rate, times int64) {
	if s.reads > 0 {
		e.keepBusy(r, Time(s.reads)*e.prices.peerCopy)
		at += rate(rate(s.reads) * e.prices.peerByte)
	}
	e.moveBytes(r, s.bytes, at, times)
}

// endStep completes a step and makes its successors ready, if it was the last they waited for.
func (e *engine) endStep(r *rank, id int32) {
	r.fresh = 0
	r.flags[id] |= ended
	if e.watch != nil {
		e.watch.tellEnd(r, id)
	}
	next := r.form.successors(id)
	for i := len(next) - 1; i >= 0; i-- {
		n := next[i]
		r.pending[n]--
		if r.pending[n] == 0 {
			r.ready = append(r.ready, n)
			if e.log != nil {
				e.log.noteReady(r, n)
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

// sendStep moves the message of a step, or lets it wait for credit or budget.
func (e *engine) sendStep(r *rank, id int32, s *step) {
	switch r.pairs[r.seat.conns[s.peer]].flow.Choose(s.bytes, r.flags[id]&credited != 0, e.isEager(r, s)) {
	case flow.Direct:
		e.sendPayload(r, id, s, data)
	case flow.Eager:
		e.sendPayload(r, id, s, eager)
	case flow.Ask:
		if r.flags[id]&reached == 0 {
			e.sendControl(r, s, want)
			r.flags[id] |= wanted
			r.waiting = append(r.waiting, id)
		}
		r.flags[id] |= reached
	default:
		r.flags[id] |= reached
	}
}

// sendPayload moves the message of a step. Bytes without credit have been charged.
func (e *engine) sendPayload(r *rank, id int32, s *step, kind messageKind) {
	r.flags[id] |= reached | leaving
	m := e.messageTo(r, s, kind)
	m.bytes, m.own = s.bytes, id
	m.isBulk = kind == data || s.bytes > e.prices.limits.EagerMax
	e.counts.Bytes += s.bytes
	if e.launchMessage(r, r.seat.conns[s.peer], m) {
		e.endStep(r, id)
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

// sendControl sends a message without payload to the other end of a step's edge.
func (e *engine) sendControl(r *rank, s *step, kind messageKind) {
	e.launchMessage(r, r.seat.conns[s.peer], e.messageTo(r, s, kind))
}

// recvStep takes an early message, else gives credit if the sender needs it.
func (e *engine) recvStep(r *rank, id int32, s *step) {
	r.flags[id] |= reached
	switch {
	case r.flags[id]&arrived != 0:
		e.moveBytes(r, s.bytes, e.prices.copy, 2) // from its place until now
		e.endRecv(r, id, s)
	case r.flags[id]&wanted != 0 || !e.isEager(r, s):
		e.sendControl(r, s, credit)
	}
}

// endRecv ends a recv with the payload of an eager message.
func (e *engine) endRecv(r *rank, id int32, s *step) {
	c := r.seat.conns[s.peer]
	if r.pairs[c].flow.Consume(s.bytes) {
		e.launchMessage(r, c, message{kind: giveBack, step: -1, own: -1, pass: int32(r.pass)})
	}
	e.endStep(r, id)
}

// resumeSends sends the messages waiting for budget to a conn. It has given some back.
func (e *engine) resumeSends(r *rank, c int32) {
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

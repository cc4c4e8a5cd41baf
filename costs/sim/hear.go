package sim

import "slices"

// takeMessage takes a message out of a rank's inbox: its processor is busy with it, and the message's step
// goes on. before is the conn of the message before, -1: there was none. It returns the conn of
// this one.
func (e *engine) takeMessage(r *rank, i, before int32) (from int32) {
	m := &e.messages[i]
	if from = before; m.kind != left {
		from = m.conn
		p := &r.pairs[m.conn]
		l := &e.prices.links[p.link]
		bytes := l.recvByte.of(m.bytes)
		if m.bytes > 0 && r.idle > 0 {
			bytes = max(l.recvByte.of(l.head(m.bytes)), bytes-min(r.idle, m.over))
		}
		r.idle = 0
		recv := l.recv
		if from == before {
			recv = l.recvMore
		}
		e.keepBusy(r, recv+bytes)
		if m.refund > 0 {
			p.flow.Refund(int64(m.refund))
			m.refund = 0
			e.resumeSends(r, m.conn)
			m = &e.messages[i] // messages may have moved
		}
	}
	switch {
	case m.kind == giveBack, r.end >= 0, int64(m.pass) < r.pass:
		e.dropMessage(i) // a late credit, if it is one at all
	case int64(m.pass) > r.pass:
		if m.kind == eager {
			e.moveBytes(r, m.bytes, e.prices.copy, 2) // to its place until then
		}
		r.early = append(r.early, i)
	default:
		kind, step, bytes := m.kind, m.step, m.bytes
		e.dropMessage(i)
		if kind == eager && r.flags[step]&reached == 0 {
			e.moveBytes(r, bytes, e.prices.copy, 2)
		}
		e.applyMessage(r, kind, step)
	}
	return from
}

// applyMessage hands a message's news to a step.
func (e *engine) applyMessage(r *rank, kind messageKind, id int32) {
	f := &r.flags[id]
	s := &r.form.steps[id]
	switch kind {
	case eager:
		if *f&reached != 0 {
			e.endRecv(r, id, s)
			return
		}
		*f |= arrived
	case data, left:
		e.endStep(r, id)
	case want:
		if *f&(arrived|ended) != 0 {
			return
		}
		if *f&reached != 0 {
			e.sendControl(r, s, credit)
		}
		*f |= wanted
	case credit:
		*f |= credited
		if *f&(reached|leaving|ended) == reached {
			r.ready = slices.Insert(r.ready, len(r.ready)-r.fresh, id)
			r.fresh++
			if e.log != nil {
				e.log.noteReady(r, id)
			}
		}
	case notify:
		*f |= arrived
		if *f&reached != 0 {
			e.endStep(r, id)
		}
	}
}

// beginPass loads the next program with steps, or finishes the rank.
func (e *engine) beginPass(r *rank) {
	for {
		r.pass++
		r.seat = e.job.seat(r.id, r.pass)
		if r.seat == nil {
			r.end = r.clock
			e.left--
			if e.log != nil {
				e.log.noteEnd(r)
			}
			return
		}
		if r.seat.form.len() > 0 {
			break
		}
	}
	e.loadForm(r)
	kept := r.early[:0]
	for _, i := range r.early {
		m := &e.messages[i]
		if int64(m.pass) != r.pass {
			kept = append(kept, i)
			continue
		}
		kind, step := m.kind, m.step
		e.dropMessage(i)
		e.applyMessage(r, kind, step)
	}
	r.early = kept
}

// loadForm makes a rank run the form of its seat.
func (e *engine) loadForm(r *rank) {
	r.form = r.seat.form
	n := r.form.len()
	r.pending, r.flags = sized(r.pending, n), sized(r.flags, n)
	clear(r.flags)
	for i := range r.pending {
		r.pending[i] = r.form.steps[i].pending
	}
	r.left, r.fresh, r.waiting = n, 0, r.waiting[:0]
	r.ready = append(r.ready[:0], r.form.first...)
	if e.watch != nil {
		e.watch.loadForm(r)
	}
	if e.log != nil {
		e.log.loadForm(r)
	}
	if e.prices.limits.Lead == 0 {
		return
	}
	for p, c := range r.seat.conns {
		if pair := &r.pairs[c]; pair.isFar {
			pair.lead.Out = e.prices.limits.CountLead(r.form.sizes(&r.form.out, int32(p)))
			pair.lead.In = e.prices.limits.CountLead(r.form.sizes(&r.form.in, int32(p)))
		}
	}
}

package sim

// launch sends a message from a rank's processor on its way, and keeps the processor
// busy with it. It reports whether all its bytes have left for the kernel: if not, the
// message's own step ends later.
func (e *engine) launch(r *rank, c int32, m message) (gone bool) {
	p := &r.pairs[c]
	to := &e.job.conns[r.id][c]
	l := &e.prices.links[p.link]
	m.from, m.to, m.conn, m.refund = r.id, to.rank, to.back, p.flow.Settle()
	send := l.send
	if p.spoken == r.looks {
		send = l.sendMore
	}
	p.spoken = r.looks
	head := r.clock + e.stretch(send+l.sendByte.of(l.head(m.bytes)))
	if !p.isFar && m.isBulk && l.sendByte > 0 {
		e.work(r, send)
		e.move(r, m.bytes, l.sendByte, 2)
	} else {
		e.work(r, send+l.sendByte.of(m.bytes))
	}
	m.cpuEnd = r.clock
	if e.log != nil {
		m.by = e.log.last[r.id]
	}
	e.counts.Messages++
	i := e.alloc()
	if !l.isWired {
		m.own = -1
		e.messages[i] = m
		e.queue.push(m.cpuEnd+e.stretch(l.latency), arrive, i)
		return true
	}
	if m.isBulk {
		takes := l.onWire(m.bytes)
		gone = p.unsent+max(0, p.drained-r.clock)+takes <= l.buffer
		p.unsent += takes
	} else {
		gone = true
	}
	if gone {
		m.own = -1
	}
	e.messages[i] = m
	if at := min(head, m.cpuEnd); at > e.now {
		e.queue.push(at, depart, i)
	} else {
		e.depart(i)
	}
	return gone
}

// depart gives a message to its sender's wire. Bulk waits for all messages before it,
// others only for others, and for what the kernel may have queued.
func (e *engine) depart(i int32) {
	m := &e.messages[i]
	k := e.ranks[m.to].pairs[m.conn].link
	w := &e.wires[k][e.domains[k][m.from]].out
	begin, takes := e.occupy(w, m, &e.prices.links[k])
	m.sent = begin + takes
	if begin > e.now {
		e.queue.push(begin, enter, i)
		return
	}
	e.enter(i)
}

// occupy reserves a wire for a message. It returns when it begins and how long it takes:
// less than usual if the wire has been idle, and lets a burst pass.
func (e *engine) occupy(w *wire, m *message, l *linkPrice) (begin, takes Time) {
	whole := l.onWire(m.bytes)
	saved := max(0, min(l.burst, e.now+l.burst-w.free))
	begin = max(e.now, w.free-l.burst)
	takes = max(0, whole-saved)
	if !m.isBulk {
		begin = max(min(begin, e.now+l.buffer), w.urgent)
		w.urgent = begin + takes
	}
	w.free = max(w.free, begin) + whole
	w.Messages++
	w.Bytes += m.bytes
	w.Busy += whole
	w.Waited += begin - e.now
	m.waited += begin - e.now
	return begin, takes
}

// enter gives a message that begins on its sender's wire to its receiver's.
func (e *engine) enter(i int32) {
	m := &e.messages[i]
	receiver := &e.ranks[m.to].pairs[m.conn]
	k := receiver.link
	l := &e.prices.links[k]
	begin, takes := e.occupy(&e.wires[k][e.domains[k][m.to]].in, m, l)
	end := max(begin+takes, m.sent, m.cpuEnd)
	m.over = end - e.now
	if m.isBulk {
		sender := &e.ranks[m.from].pairs[e.job.conns[m.to][m.conn].back]
		sender.unsent -= l.onWire(m.bytes)
		sender.drained = max(sender.drained, end)
	}
	e.queue.push(end+e.stretch(l.latency), arrive, i)
	if m.own >= 0 {
		note, at := message{kind: left, to: m.from, step: m.own, pass: m.pass, by: m.by, cpuEnd: m.cpuEnd}, max(m.cpuEnd, end-l.buffer)
		j := e.alloc() // which may move messages
		e.messages[j] = note
		e.queue.push(at, arrive, j)
	}
}

package sim

// launchMessage sends a message from a rank's processor on its way, and keeps the processor
// busy with it. It reports whether all its bytes have left for the kernel: if not, the
// message's own step ends later.
func (e *engine) launchMessage(r *rank, c int32, m message) (gone bool) {
	p := &r.pairs[c]
	to := &e.job.conns[r.id][c]
	l := &e.prices.links[p.link]
	m.from, m.to, m.conn, m.refund = r.id, to.rank, to.back, p.flow.Settle()
	send := l.send
	if p.spoken == r.looks {
		send = l.sendMore
	}
	p.spoken = r.looks
	head := r.clock + e.addNoise(send+l.sendByte.of(l.head(m.bytes)))
	if !p.isFar && m.isBulk && l.sendByte > 0 {
		e.keepBusy(r, send)
		e.moveBytes(r, m.bytes, l.sendByte, 2)
	} else {
		e.keepBusy(r, send+l.sendByte.of(m.bytes))
	}
	m.cpuEnd = r.clock
	if e.log != nil {
		m.by = e.log.last[r.id]
	}
	e.counts.Messages++
	i := e.allocMessage()
	if !l.isWired {
		m.own = -1
		e.messages[i] = m
		e.queue.push(m.cpuEnd+e.addNoise(l.latency), arrive, i)
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
		e.departMessage(i)
	}
	return gone
}

// departMessage gives a message to its sender's wire. Bulk waits for its turn, others only for others, and
// for the kernel's queue.
func (e *engine) departMessage(i int32) {
	m := &e.messages[i]
	sender := e.senderOf(m)
	w := &e.wires[sender.link][e.domains[sender.link][m.from]].out
	l := &e.prices.links[sender.link]
	whole := l.onWire(m.bytes)
	w.Messages++
	w.Bytes += m.bytes
	if m.isBulk {
		m.rest, m.since = whole, e.now
		w.backlog += whole
		w.turns = append(w.turns, lane{m.from, e.job.conns[m.to][m.conn].back})
		e.appendMessage(&sender.bulk, i)
		e.awaitTurn(w)
		return
	}
	begin := max(min(max(e.now, w.free+w.backlog-l.burst), e.now+l.buffer), w.urgent)
	m.part, m.sent = whole, begin+l.pass(w, e.now, whole)
	w.urgent = m.sent
	w.free = max(w.free, e.now) + whole
	w.Busy += whole
	e.noteDelay(w, m, begin-e.now)
	if begin > e.now {
		e.queue.push(begin, enter, i)
		return
	}
	e.enterWires(i)
}

// senderOf returns the knowledge of a message's sender of its conn.
func (e *engine) senderOf(m *message) *pair {
	return &e.ranks[m.from].pairs[e.job.conns[m.to][m.conn].back]
}

// noteDelay notes for how long a message has waited for a wire.
func (e *engine) noteDelay(w *wire, m *message, d Time) {
	w.Waited += d
	m.waited += d
}

// pass returns how long a wire is busy with something of a whole time: less than that if the wire
// has been idle, and lets a burst pass.
func (l *linkPrice) pass(w *wire, now, whole Time) Time {
	return max(0, whole-max(0, min(l.burst, now+l.burst-w.free)))
}

// awaitTurn lets bulk have a turn on a wire as soon as it is free.
func (e *engine) awaitTurn(w *wire) {
	switch {
	case w.isAwaited:
	case w.until > e.now:
		w.isAwaited = true
		e.queue.push(w.until, turn, w.id)
	default:
		e.takeTurn(w)
	}
}

// takeTurn puts a part of the next bulk on a wire, if there is any. The rest of the message waits
// behind the others, as connections share a network. Those of one conn stay in their order.
func (e *engine) takeTurn(w *wire) {
	w.isAwaited = false
	if len(w.turns) == 0 {
		return
	}
	next := w.turns[0]
	sender := &e.ranks[next.rank].pairs[next.conn]
	l := &e.prices.links[sender.link]
	if w.until = max(w.until, w.free-l.burst); w.until > e.now {
		e.awaitTurn(w)
		return
	}
	w.turns = w.turns[1:]
	i := sender.bulk.first
	m := &e.messages[i]
	m.part = m.rest
	if few := max(l.onWire(leastPart), w.backlog/fewestParts); m.rest > few+few/2 {
		m.part = few
	}
	m.rest -= m.part
	w.backlog -= m.part
	e.noteDelay(w, m, e.now-m.since)
	m.sent = e.now + l.pass(w, e.now, m.part)
	m.since, w.until = m.sent, m.sent
	w.free = max(w.free, e.now) + m.part
	w.Busy += m.part
	if m.rest == 0 {
		sender.bulk.first = m.next
	} else {
		w.turns = append(w.turns, next)
	}
	e.enterWires(i)
	if len(w.turns) > 0 {
		e.awaitTurn(w) // now, perhaps: a burst takes no time
	}
}

// leastPart is how much of a message a wire carries at least before it is another one's turn, in
// bytes: about a socket's part of a device's queue. fewestParts is the least number of parts of all
// bulk waiting for a wire: more are more exact, and slower.
const (
	leastPart   = 128 << 10
	fewestParts = 32
)

// enterWires gives the part of a message on its sender's wire to its receiver's.
func (e *engine) enterWires(i int32) {
	m := &e.messages[i]
	receiver := &e.ranks[m.to].pairs[m.conn]
	k := receiver.link
	l := &e.prices.links[k]
	w := &e.wires[k][e.domains[k][m.to]].in
	begin := max(e.now, w.free-l.burst)
	takes := l.pass(w, e.now, m.part)
	if !m.isBulk {
		begin = max(min(begin, e.now+l.buffer), w.urgent)
		w.urgent = begin + takes
	}
	w.free = max(w.free, begin) + m.part
	w.Busy += m.part
	e.noteDelay(w, m, begin-e.now)
	end := max(begin+takes, m.sent)
	if m.isBulk {
		sender := e.senderOf(m)
		sender.unsent -= m.part
		sender.drained = max(sender.drained, end)
	}
	if !m.hasBegun {
		m.hasBegun, m.over = true, -e.now
	}
	if m.rest > 0 {
		return
	}
	w.Messages++
	w.Bytes += m.bytes
	end = max(end, m.cpuEnd)
	m.over += end
	e.queue.push(end+e.addNoise(l.latency), arrive, i)
	if m.own >= 0 {
		note, at := message{kind: left, to: m.from, step: m.own, pass: m.pass, by: m.by, cpuEnd: m.cpuEnd}, max(m.cpuEnd, end-l.buffer)
		j := e.allocMessage() // this may move messages
		e.messages[j] = note
		e.queue.push(at, arrive, j)
	}
}

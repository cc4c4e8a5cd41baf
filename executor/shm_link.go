package executor

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"github.com/tierflow/tierflow/levels"
)

// shmLink is the link between this rank and one peer of its node.
type shmLink struct {
	ringLink
	peer     levels.Rank
	own      *segment // ours
	theirs   *segment // the peer's, as mapped here
	toPeer   int      // the peer's place in the node: which lane of ours is for it
	fromPeer int      // our place: which lane of the peer's is for us
	bell     func()   // wakes the peer
	pid      int      // whose memory this process may read; 0 if not
	readable bool     // the peer may read ours

	out   ringWriter
	m     message      // the one being read: a field, so that reading allocates nothing
	queue fifo[queued] // what found no room in the ring, in order

	parts    uint64         // of our stream, sent
	partsEnd *atomic.Uint64 // consumed, in the peer's memory
	taken    uint64         // parts of the peer's stream consumed here
	cut      parts          // of the large payload being read
	bulk     fifo[outgoing] // large payloads on their way, in order

	ringReserved   bool // our lane's memory is there
	streamReserved bool

	small int64 // bounds the payload of a message
	told  bool  // the engine has been told that it is dead
}

// queued is a message that waits for room.
type queued struct {
	m       message
	addr    uint64
	payload []byte
}

// outgoing is a large payload on its way.
type outgoing struct {
	m     message
	src   []byte
	sent  int
	token int32
}

// partKind announces a part of a large payload in the stream.
const partKind = kind(0xfe)

func newShmLink(peer levels.Rank, own, theirs *segment, me, it int, small int64, bell func()) *shmLink {
	l := &shmLink{
		peer: peer, own: own, theirs: theirs, toPeer: it, fromPeer: me, small: small, bell: bell,
		out:      ringWriter{mem: own.ring(it), consumed: theirs.consumedRing(me)},
		ringLink: ringLink{in: ringReader{mem: theirs.ring(me), consumed: own.consumedRing(it)}},
		partsEnd: theirs.consumedParts(me),
	}
	l.wake, l.away = l.ring, theirs.away()
	return l
}

// reserve takes the memory of our lane, of the stream too if it is to be used. If
// there is none the link is dead.
func (l *shmLink) reserve(stream bool) bool {
	var err error
	if !l.ringReserved {
		err = l.own.reserveRing(l.toPeer)
		l.ringReserved = err == nil
	}
	if stream && !l.streamReserved && err == nil {
		err = l.own.reserveStream(l.toPeer)
		l.streamReserved = err == nil
	}
	if err != nil && l.dead == nil {
		l.dead = fmt.Errorf("shared memory towards it: %w", err)
	}
	return err == nil
}

func (l *shmLink) post(m *message, payload []byte) {
	if !l.ringReserved && !l.reserve(false) {
		return
	}
	addr := l.own.offset(m.addr)
	if m.kind == notifyKind {
		m.size = int64(l.own.age().Load())
		if addr == 0 && m.addr != nil {
			addr = uint64(uintptr(m.addr)) | remoteBit
		}
	}
	if l.queue.len() == 0 && l.out.push(m, addr, payload) {
		l.ring()
		return
	}
	l.queue.push(queued{*m, addr, append([]byte(nil), payload...)})
}

// ring wakes the peer if it sleeps. The stamp was stored before; the peer sets its
// flag before it looks at the stamps a last time.
func (l *shmLink) ring() {
	if l.theirs.sleeping().Load() != 0 {
		l.bell()
	}
}

func (l *shmLink) put(m *message, src []byte, token int32) bool {
	if !l.streamReserved && !l.reserve(true) {
		return false
	}
	l.bulk.push(outgoing{m: *m, src: src, token: token})
	return false
}

// flush moves on what is on its way out. It reports whether it moved anything.
func (l *shmLink) flush(s sink) bool {
	moved := false
	for l.queue.len() > 0 {
		q := l.queue.first()
		if !l.out.push(&q.m, q.addr, q.payload) {
			break
		}
		l.queue.pop()
		moved = true
	}
	for l.bulk.len() > 0 && l.queue.len() == 0 && l.room() {
		l.stream(s)
		moved = true
	}
	if moved {
		l.ring()
	}
	return moved
}

// room reports whether the stream and the ring have room for a part.
func (l *shmLink) room() bool { return l.parts-l.partsEnd.Load() < streamParts && l.out.fits(0) }

// stuck reports whether flush could move nothing: the peer wakes this rank when
// that changes.
func (l *shmLink) stuck() bool {
	switch {
	case l.queue.len() > 0:
		return !l.out.fits(len(l.queue.first().payload))
	case l.bulk.len() > 0:
		return !l.room()
	}
	return true
}

// stream sends the next part of the first large payload; there is room.
func (l *shmLink) stream(s sink) {
	b := l.bulk.first()
	m := b.m
	m.kind = partKind
	if b.sent > 0 {
		m.refund = 0 // given back with the first part
	}
	n := copy(l.own.part(l.toPeer, l.parts), b.src[b.sent:])
	l.out.push(&m, uint64(b.sent)<<8|uint64(b.m.kind), nil)
	l.parts++
	b.sent += n
	if b.sent == len(b.src) {
		token := b.token
		l.bulk.pop()
		s.sent(token)
	}
}

// forget makes the link let go of the buffers of a communicator that has failed:
// they are the caller's again.
func (l *shmLink) forget(what scope, s sink) { dropBulk(&l.bulk, what, s, l.post) }

// dropBulk drops what has failed of a link's payloads, but gives back what those would
// have that have not begun. One that goes without credit leaves all the same, from a copy:
// it is charged, and the peer, which may not have failed, may take it.
func dropBulk(bulk *fifo[outgoing], what scope, s sink, post func(m *message, payload []byte)) {
	refund, all := int32(0), bulk.all()
	for i := range all {
		if b := &all[i]; what.has(&b.m) && !b.m.kind.large() {
			b.src = bytes.Clone(b.src)
		}
	}
	bulk.drop(func(b outgoing) bool {
		if !what.has(&b.m) || !b.m.kind.large() {
			return false
		}
		if b.sent == 0 {
			refund += b.m.refund
		}
		s.sent(b.token)
		return true
	})
	if refund > 0 {
		post(&message{kind: returnKind, refund: refund}, nil)
	}
}

// poll hands over what has come. What no rank says is the link's end.
func (l *shmLink) poll(s sink) bool {
	some := false
	m := &l.m
	for l.dead == nil {
		addr, payload, ok := l.in.pop(m)
		if !ok {
			break
		}
		some = true
		if m.kind == partKind {
			l.dead = l.takePart(s, m, addr)
		} else if l.dead = m.check(int64(len(payload)), l.small); l.dead == nil {
			l.resolve(m, addr)
			s.deliver(l.peer, m, payload)
		}
		if l.in.done() {
			l.ring()
		}
	}
	return some
}

// remoteBit marks an address of the sender's process, as opposed to an offset in
// its segment.
const remoteBit = 1 << 63

// resolve says where the memory is that a message means.
func (l *shmLink) resolve(m *message, addr uint64) {
	if m.kind == notifyKind {
		m.age, m.size = uint64(m.size), 0
	}
	if addr&remoteBit != 0 {
		m.remote = addr &^ remoteBit
		return
	}
	m.addr = l.theirs.at(addr)
}

// takePart copies a part to its place. Its address word has the payload's kind and
// the part's offset.
func (l *shmLink) takePart(s sink, m *message, word uint64) error {
	m.kind, m.offset = kind(word), int64(word>>8)
	turn := m.pass
	m.pass = 0
	m.setTurn(turn)
	n := min(m.size-m.offset, partBytes)
	if !m.kind.large() {
		return fmt.Errorf("%w: a part of a message of kind %d", ErrProtocol, uint8(m.kind))
	}
	if err := m.check(n, l.small); err != nil {
		return err
	}
	if err := l.cut.follow(m, n, partBytes); err != nil {
		return err
	}
	giveBack(s, l.peer, m)
	if dst := s.place(l.peer, m); int64(len(dst)) >= n {
		copy(dst, l.theirs.part(l.fromPeer, l.taken)[:n])
	}
	l.taken++
	l.own.consumedParts(l.toPeer).Store(l.taken)
	l.ring() // the peer may wait for room
	if m.offset+n == m.size {
		m.offset = 0
		s.deliver(l.peer, m, nil)
	}
	return nil
}

// giveBack passes on the budget that came with a large payload's first part, in the
// memory of its message: a new one would be an allocation.
func giveBack(s sink, from levels.Rank, m *message) {
	if m.refund > 0 {
		whole := *m
		*m = message{kind: returnKind, refund: m.refund}
		s.deliver(from, m, nil)
		*m, m.refund = whole, 0
	}
}

// busy reports whether something is still on its way out.
func (l *shmLink) busy() bool { return l.dead == nil && l.queue.len()+l.bulk.len() > 0 }

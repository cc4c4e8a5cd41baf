package shm

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Link is the link between this rank and one peer of its node.
type Link struct {
	End
	Peer       levels.Rank // of the world
	own        *Segment    // ours
	theirs     *Segment    // the peer's, as mapped here
	toPeer     int         // the peer's place in the node: which lane of ours is for it
	fromPeer   int         // our place: which lane of the peer's is for us
	Bell       func()      // wakes the peer
	PID        int         // whose memory this process may read; 0 if not
	IsReadable bool        // the peer may read ours

	out   Writer
	m     wire.Message      // the one being read: a field, so reading allocates nothing
	queue wire.Fifo[queued] // messages without room in the ring, in order

	parts    uint64                   // of our stream, sent
	partsEnd *atomic.Uint64           // consumed, in the peer's memory
	taken    uint64                   // parts of the peer's stream consumed here
	cut      wire.Parts               // of the large payload being read
	bulk     wire.Fifo[wire.Outgoing] // large payloads on their way, in order

	ringReserved   bool // our lane's memory is there
	streamReserved bool

	small int64 // bounds the payload of a message
	told  bool  // the engine has been told that it is dead
}

// queued is a message waiting for room.
type queued struct {
	m       wire.Message
	addr    uint64
	payload []byte
}

// partKind announces a part of a large payload in the stream.
const partKind = wire.Kind(0xfe)

// NewLink returns the link to a peer of the node. me and it are the places of this rank and
// the peer in the node. small bounds the payload of a message, bytes; bell wakes the peer.
func NewLink(peer levels.Rank, own, theirs *Segment, me, it int, small int64, bell func()) *Link {
	l := &Link{
		Peer: peer, own: own, theirs: theirs, toPeer: it, fromPeer: me, small: small, Bell: bell,
		out:      Writer{Mem: own.ring(it), Consumed: theirs.consumedRing(me)},
		End:      End{In: Reader{Mem: theirs.ring(me), Consumed: own.consumedRing(it)}},
		partsEnd: theirs.consumedParts(me),
	}
	l.Wake, l.Away = l.ring, theirs.away()
	return l
}

// reserve takes the memory of our lane, of the stream too if it is to be used. If
// there is none the link is dead.
func (l *Link) reserve(stream bool) bool {
	var err error
	if !l.ringReserved {
		err = l.own.reserveRing(l.toPeer)
		l.ringReserved = err == nil
	}
	if stream && !l.streamReserved && err == nil {
		err = l.own.reserveStream(l.toPeer)
		l.streamReserved = err == nil
	}
	if err != nil && l.Dead == nil {
		l.Dead = fmt.Errorf("shared memory towards it: %w", err)
	}
	return err == nil
}

// Post sends a message, or queues it if the ring has no room.
func (l *Link) Post(m *wire.Message, payload []byte) {
	if !l.ringReserved && !l.reserve(false) {
		return
	}
	addr := l.own.offset(m.Addr)
	if m.Kind == wire.Notify {
		m.Age = l.own.age().Load()
		if addr == 0 && m.Addr != nil {
			addr = uint64(uintptr(m.Addr)) | remoteBit
		}
	}
	if l.queue.Len() == 0 && l.out.Push(m, addr, payload) {
		l.ring()
		return
	}
	l.queue.Push(queued{*m, addr, append([]byte(nil), payload...)})
}

// ring wakes the peer if it sleeps. The stamp was stored before; the peer sets its
// flag before it looks at the stamps a last time.
func (l *Link) ring() {
	if l.theirs.sleeping().Load() != 0 {
		l.Bell()
	}
}

// Put queues a large payload; Flush moves it.
func (l *Link) Put(m *wire.Message, src []byte, token int32) bool {
	if !l.streamReserved && !l.reserve(true) {
		return false
	}
	wire.Queue(&l.bulk, wire.Outgoing{Message: *m, Src: src, Token: token})
	return false
}

// Flush moves on all messages on their way out. It reports whether it moved anything.
func (l *Link) Flush(s wire.Sink) bool {
	moved := false
	for l.queue.Len() > 0 {
		q := l.queue.First()
		if !l.out.Push(&q.m, q.addr, q.payload) {
			break
		}
		l.queue.Pop()
		moved = true
	}
	for l.bulk.Len() > 0 && l.queue.Len() == 0 && l.room() {
		l.stream(s)
		moved = true
	}
	if moved {
		l.ring()
	}
	return moved
}

// room reports whether the stream and the ring have room for a part.
func (l *Link) room() bool { return l.parts-l.partsEnd.Load() < streamParts && l.out.fits(0) }

// stuck reports whether flush could move nothing: the peer wakes this rank when
// that changes.
func (l *Link) stuck() bool {
	switch {
	case l.queue.Len() > 0:
		return !l.out.fits(len(l.queue.First().payload))
	case l.bulk.Len() > 0:
		return !l.room()
	}
	return true
}

// stream sends the next part of the first large payload; there is room.
func (l *Link) stream(s wire.Sink) {
	b := l.bulk.First()
	m := b.Message
	m.Kind = partKind
	if b.Gone > 0 {
		m.Refund = 0 // given back with the first part
	}
	n := copy(l.own.part(l.toPeer, l.parts), b.Src[b.Gone:])
	l.out.Push(&m, uint64(b.Gone)<<8|uint64(b.Message.Kind), nil)
	l.parts++
	b.Gone += n
	if b.Gone == len(b.Src) {
		token := b.Token
		l.bulk.Pop()
		s.Sent(token)
	}
}

// Forget makes the link let go of the buffers of a failed communicator:
// they are the caller's again.
func (l *Link) Forget(what wire.Scope, s wire.Sink) { wire.DropBulk(&l.bulk, what, s, l.Post) }

// Poll hands over the messages that have come. An impossible one is the link's end.
func (l *Link) Poll(s wire.Sink) bool {
	some := false
	m := &l.m
	for l.Dead == nil {
		addr, payload, ok := l.In.Pop(m)
		if !ok {
			break
		}
		some = true
		if m.Kind == partKind {
			l.Dead = l.takePart(s, m, addr)
		} else if l.Dead = m.Check(int64(len(payload)), l.small); l.Dead == nil {
			l.resolve(m, addr)
			s.Deliver(l.Peer, m, payload)
		}
		if l.In.Done() {
			l.ring()
		}
	}
	return some
}

// remoteBit marks an address of the sender's process, as opposed to an offset in
// its segment.
const remoteBit = 1 << 63

// resolve finds the memory meant by a message.
func (l *Link) resolve(m *wire.Message, addr uint64) {
	if addr&remoteBit != 0 {
		m.Remote = addr &^ remoteBit
		return
	}
	m.Addr = l.theirs.at(addr)
}

// takePart copies a part to its place. Its address word has the payload's kind and
// the part's offset.
func (l *Link) takePart(s wire.Sink, m *wire.Message, word uint64) error {
	seq, turn, edge := m.Numbers()
	m.Seq, m.Pass, m.Edge = 0, 0, 0
	m.Kind, m.Offset = wire.Kind(word), int64(word>>8)
	m.SetNumbers(seq, turn, edge)
	n := min(m.Size-m.Offset, partBytes)
	if !m.Kind.IsLarge() {
		return fmt.Errorf("%w: a part of a message of kind %d", wire.ErrProtocol, uint8(m.Kind))
	}
	if err := m.Check(n, l.small); err != nil {
		return err
	}
	if err := l.cut.Follow(m, n, partBytes); err != nil {
		return err
	}
	wire.GiveBack(s, l.Peer, m)
	if dst := s.Place(l.Peer, m); int64(len(dst)) >= n {
		copy(dst, l.theirs.part(l.fromPeer, l.taken)[:n])
	}
	l.taken++
	l.own.consumedParts(l.toPeer).Store(l.taken)
	l.ring() // the peer may wait for room
	if m.Offset+n == m.Size {
		m.Offset = 0
		s.Deliver(l.Peer, m, nil)
	}
	return nil
}

// HasRing reports whether a message has been sent by the link.
func (l *Link) HasRing() bool { return l.ringReserved }

// IsQuiet reports whether there is nothing to poll or flush: the rank may sleep.
func (l *Link) IsQuiet() bool { return l.Dead != nil || !l.In.HasMessage() && l.stuck() }

// Report tells the engine, once, that the link is dead.
func (l *Link) Report(s wire.Sink) {
	if l.Dead != nil && !l.told {
		l.told = true
		s.Fail(l.Peer, l.Dead)
	}
}

// Forsake ends the link, without telling the engine, to a peer that is lost or reads no
// more.
func (l *Link) Forsake(lost bool, why error) {
	if l.Dead == nil && (lost || l.theirs.leftFlag().Load() != 0) {
		l.Dead, l.told = why, true
	}
}

// Holds reports whether n bytes from p on lie in the peer's segment.
func (l *Link) Holds(p unsafe.Pointer, n int64) bool { return l.theirs.Holds(p, n) }

// Intact reports whether the peer has not left a run on comm since its memory was of that
// age.
func (l *Link) Intact(comm wire.CommID, age uint64) bool { return l.theirs.intact(comm, age) }

// IsBusy reports whether something is still on its way out.
func (l *Link) IsBusy() bool { return l.Dead == nil && l.queue.Len()+l.bulk.Len() > 0 }

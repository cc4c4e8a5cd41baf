package local

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/shm"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// hub is shared by the goroutine ranks of a world.
type hub struct {
	inboxes []*inbox // by rank
	pairs   *pairs   // nil: there are only the inboxes
	shaper  Shaper   // nil: messages arrive at once
	clock   *clock   // nil unless shaped

	// Messages to all, kept once for all of them: with thousands of ranks goodbyes in inboxes would take gigabytes.
	saying sync.Mutex
	said   atomic.Pointer[[]saidToAll] // only ever appended to
}

type saidToAll struct {
	from    levels.Rank
	message wire.Message
}

// carry takes a message to a rank's inbox, at once or when it is due.
func (h *hub) carry(from, to levels.Rank, m *wire.Message, payload []byte) {
	if h.clock != nil {
		n := int64(len(payload))
		if m.Kind.IsLarge() {
			n = m.Size
		}
		now := time.Now()
		if due := h.shaper.Due(from, to, n, now); due.After(now) {
			h.clock.hold(due, from, to, m, payload)
			return
		}
	}
	h.inboxes[to].push(from, m, payload)
}

// inbox is the messages from others to one rank. A large payload does not pass through it:
// the sender copies it to the address in the receiver's credit.
type inbox struct {
	mu    sync.Mutex
	box   wire.Batch // filled by senders, under mu
	taken wire.Batch // being read by the owner; swapped with box
	_     [wire.CacheLine]byte

	// Senders look at these with every message, and mostly leave them as they are.
	some   atomic.Bool   // there is something in box
	spoken atomic.Uint64 // by rank modulo 64: something may be in the ring from there
	wire.Bell
	_ [wire.CacheLine]byte
}

func newInbox() *inbox {
	b := &inbox{}
	b.Listen(func() bool { return b.some.Load() || b.spoken.Load() != 0 })
	return b
}

// push adds a message; it may be called by any goroutine.
func (b *inbox) push(from levels.Rank, m *wire.Message, payload []byte) {
	b.mu.Lock()
	b.box.Add(from, m, payload)
	b.some.Store(true)
	b.mu.Unlock()
	b.Ring()
}

// speak says that something has come by the ring from a rank.
func (b *inbox) speak(from levels.Rank) {
	if bit := uint64(1) << (from % 64); b.spoken.Load()&bit == 0 {
		b.spoken.Or(bit)
	}
	b.Ring()
}

// link is the link and the sleeper of one goroutine rank.
type link struct {
	*inbox
	hub   *hub
	rank  levels.Rank
	polls int // see Looks
	heard int // messages to all that were handed over
}

var (
	_ wire.Link        = (*link)(nil)
	_ wire.Broadcaster = (*link)(nil)
	_ wire.Sleeper     = (*link)(nil)
	_ executor.Sharer  = (*link)(nil)
)

// Post sends a message by a ring or to the inbox of a rank.
func (l *link) Post(to levels.Rank, m *wire.Message, payload []byte) {
	if e := l.hub.pairs.end(l.rank, to); e != nil && e.push(m, payload) {
		l.hub.inboxes[to].speak(l.rank)
		return
	}
	l.hub.carry(l.rank, to, m, payload)
}

// PostAll sends a message to all ranks, if all messages go to inboxes at once.
func (l *link) PostAll(m *wire.Message) bool {
	h := l.hub
	if h.clock != nil || h.pairs != nil {
		return false
	}
	h.saying.Lock()
	var all []saidToAll
	if said := h.said.Load(); said != nil {
		all = *said
	}
	all = append(all, saidToAll{l.rank, *m})
	h.said.Store(&all)
	h.saying.Unlock()
	for to, b := range h.inboxes {
		if levels.Rank(to) != l.rank {
			b.some.Store(true)
			b.Ring()
		}
	}
	return true
}

// Put copies straight to the receiver's buffer, at the address in the credit.
func (l *link) Put(to levels.Rank, m *wire.Message, src []byte, _ int32) bool {
	copy(wire.BytesAt(m.Addr, 0, int64(len(src))), src)
	l.Post(to, m, nil)
	return true
}

// Poll hands over the messages in the rings and in the inbox.
func (l *link) Poll(s wire.Sink) bool {
	did := l.spoken.Load() != 0 && l.pollRings(s)
	return l.some.Load() && l.pollBox(s) || did
}

// PollNode is Poll.
func (l *link) PollNode(s wire.Sink) bool { return l.Poll(s) }

func (l *link) pollRings(s wire.Sink) bool {
	did := false
	for who := l.spoken.Swap(0); who != 0; who &= who - 1 {
		for from := levels.Rank(bits.TrailingZeros64(who)); int(from) < len(l.hub.inboxes); from += 64 {
			if e := l.hub.pairs.end(l.rank, from); e != nil && e.poll(from, s) {
				did = true
			}
		}
	}
	return did
}

func (l *link) pollBox(s wire.Sink) bool {
	l.some.Store(false)       // before anything is taken: what comes meanwhile sets it again
	said := l.hub.said.Load() // before the box is taken, so that nothing older comes later
	l.mu.Lock()
	l.box, l.taken = l.taken, l.box
	l.mu.Unlock()
	l.taken.Empty(func(from levels.Rank, m *wire.Message, payload []byte) {
		if e := l.hub.pairs.end(l.rank, from); e != nil {
			e.poll(from, s) // it is older
			e.taken.Add(1)
		}
		s.Deliver(from, m, payload)
	})
	if said != nil {
		for ; l.heard < len(*said); l.heard++ {
			if one := &(*said)[l.heard]; one.from != l.rank {
				s.Deliver(one.from, &one.message, nil)
			}
		}
	}
	return true
}

// Flush has nothing to do: posted messages have arrived.
func (l *link) Flush(wire.Sink) bool { return false }

// Forget has nothing to do: a put is over when it returns.
func (l *link) Forget(wire.Scope, wire.Sink) {}

// RingTo makes the rings with a rank: a program of small messages is about to use them.
func (l *link) RingTo(peer levels.Rank) *shm.End {
	e := l.hub.pairs.end(l.rank, peer)
	if e == nil {
		return nil
	}
	e.open()
	return &e.End
}

// Rings counts the pairs of goroutine ranks with rings.
func (l *link) Rings() int { return l.hub.pairs.rings() }

// Looks returns how often to look for a message before it is worth a yield.
func (l *link) Looks() int { return l.polls }

// Relax lets other goroutines run.
func (l *link) Relax() { runtime.Gosched() }

package executor

import (
	"errors"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// inbox is the link of goroutine ranks: what others have said to one rank. A
// large payload does not pass through it: the sender copies it to the address
// that the receiver's credit carries.
type inbox struct {
	mu    sync.Mutex
	box   wire.Batch    // filled by senders, under mu
	taken wire.Batch    // being read by the owner; swapped with box
	bell  chan struct{} // capacity 1
	_     [wire.CacheLine]byte

	// Senders look at these with every message, and mostly leave them as they are.
	some     atomic.Bool   // there is something in box
	spoken   atomic.Uint64 // by rank modulo 64: something may be in the ring that comes from there
	sleeping atomic.Bool
	_        [wire.CacheLine]byte
}

func newInbox() *inbox { return &inbox{bell: make(chan struct{}, 1)} }

// push adds a message; it may be called by any goroutine.
func (b *inbox) push(from levels.Rank, m *wire.Message, payload []byte) {
	b.mu.Lock()
	b.box.Add(from, m, payload)
	b.some.Store(true)
	b.mu.Unlock()
	b.rouse()
}

// speak says that something has come by the ring from a rank.
func (b *inbox) speak(from levels.Rank) {
	if bit := uint64(1) << (from % 64); b.spoken.Load()&bit == 0 {
		b.spoken.Or(bit)
	}
	b.rouse()
}

// rouse wakes the owner if it sleeps. What it will find was put there before; the
// owner sets its flag before it looks a last time.
func (b *inbox) rouse() {
	if b.sleeping.Load() {
		b.ring()
	}
}

func (b *inbox) ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// local is the transport of one goroutine rank.
type local struct {
	*inbox
	world  *World
	rank   levels.Rank
	polls  int // see looks
	ticker ticker
}

var (
	_ wire.Transport = (*local)(nil)
	_ sharer         = (*local)(nil)
)

func (l *local) Post(to levels.Rank, m *wire.Message, payload []byte) {
	if e := l.world.pairs.end(l.rank, to); e != nil && e.push(m, payload) {
		l.world.inboxes[to].speak(l.rank)
		return
	}
	l.world.carry(l.rank, to, m, payload)
}

// put copies straight to the receiver's buffer, whose address the credit has.
func (l *local) Put(to levels.Rank, m *wire.Message, src []byte, _ int32) bool {
	copy(wire.BytesAt(m.Addr, 0, int64(len(src))), src)
	l.Post(to, m, nil)
	return true
}

func (l *local) Poll(s wire.Sink) bool {
	did := l.spoken.Load() != 0 && l.pollRings(s)
	return l.some.Load() && l.pollBox(s) || did
}

func (l *local) pollNode(s wire.Sink) bool { return l.Poll(s) }

func (l *local) pollRings(s wire.Sink) bool {
	did := false
	for who := l.spoken.Swap(0); who != 0; who &= who - 1 {
		for from := levels.Rank(bits.TrailingZeros64(who)); int(from) < l.world.Size(); from += 64 {
			if e := l.world.pairs.end(l.rank, from); e != nil && e.poll(from, s) {
				did = true
			}
		}
	}
	return did
}

func (l *local) pollBox(s wire.Sink) bool {
	l.mu.Lock()
	l.box, l.taken = l.taken, l.box
	l.some.Store(false)
	l.mu.Unlock()
	l.taken.Empty(func(from levels.Rank, m *wire.Message, payload []byte) {
		if e := l.world.pairs.end(l.rank, from); e != nil {
			e.poll(from, s) // it is older
			e.taken.Add(1)
		}
		s.Deliver(from, m, payload)
	})
	return true
}

// flush has nothing to do: what is posted has arrived.
func (l *local) Flush(wire.Sink) bool { return false }

func (l *local) Yield(int) { runtime.Gosched() }

// ringTo makes the rings with a rank: a program of small messages is about to use
// them.
func (l *local) ringTo(peer levels.Rank) *ringLink {
	e := l.world.pairs.end(l.rank, peer)
	if e == nil {
		return nil
	}
	e.open()
	return &e.ringLink
}

func (l *local) looks() int { return l.polls }

func (l *local) relax() { runtime.Gosched() }

func (l *local) Arm() bool {
	l.sleeping.Store(true)
	if l.some.Load() || l.spoken.Load() != 0 {
		l.sleeping.Store(false)
		return false
	}
	return true
}

func (l *local) Park(done <-chan struct{}) (ticked bool) {
	select {
	case <-l.bell:
	case <-done:
	case <-l.ticker.armed():
		l.ticker.on = false
		ticked = true
	}
	l.sleeping.Store(false)
	return ticked
}

// shared is plain memory: all goroutines can read it.
func (l *local) Shared(n int64) ([]byte, func(), error) { return wire.Heap(n) }

func (l *local) Lend(n int64) ([]byte, func(), error) { return wire.Heap(n) }

// Goroutine ranks read each other's memory as their own; that a rank may not leave
// a run while it is read is seen to by [World.fail].

func (l *local) Readable(unsafe.Pointer) bool { return true }

func (l *local) Read(levels.Rank, uint64, []byte) error { return errors.ErrUnsupported }

func (l *local) Remote(levels.Rank) bool { return false }

func (l *local) Holds(levels.Rank, unsafe.Pointer, int64) bool { return true }

func (l *local) Intact(levels.Rank, wire.CommID, uint64) bool { return true }

// forget has nothing to do: a put is over when it returns.
func (l *local) Forget(wire.Scope, wire.Sink) {}

func (l *local) Open(levels.Rank) bool { return true }

func (l *local) Leave(wire.CommID) {}

// ticker is a timer that is armed again only after it has fired, so that parking
// costs nothing.
type ticker struct {
	timer *time.Timer
	on    bool
}

func (t *ticker) armed() <-chan time.Time {
	switch {
	case t.timer == nil:
		t.timer = time.NewTimer(wire.Tick)
	case !t.on:
		t.timer.Reset(wire.Tick)
	}
	t.on = true
	return t.timer.C
}

func (l *local) Wake() { l.ring() }

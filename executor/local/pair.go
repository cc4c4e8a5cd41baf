package local

import (
	"sync/atomic"

	"github.com/tierflow/tierflow/executor/internal/shm"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// pairs are the rings between goroutine ranks: those of two ranks are made with the
// first program of small messages between them.
type pairs struct {
	size int
	all  []atomic.Pointer[pair] // by the lower rank, then the higher
}

// crowd ranks or more for each processor have no rings: a waiting rank does better to
// sleep then. The number of rings grows with the square of the ranks, and all take
// turns in the same caches, so they cost as much as they gain.
const crowd = 5

// pair is two ranks with a ring in either direction, as between processes. A ring
// takes no addresses, as the collector has to see them, and may be full: then the
// message goes to the other's inbox, and so do all later ones until the other has
// taken it out of there. So messages in the ring are always older than those in the
// inbox, and the order is kept.
type pair struct {
	rings atomic.Pointer[[2][]byte] // by the rank that writes, the lower first; nil: none yet
	ends  [2]end                    // of the lower rank, and of the higher
}

// end is a rank's end of a pair, guarded by its engine's lock.
type end struct {
	shm.End
	pair  *pair
	at    int // of the pair's ends
	out   shm.Writer
	m     wire.Message // the one being read: a field, so reading allocates nothing
	boxed uint64       // messages that went to the other's inbox
	seen  uint64       // of them taken, when last looked at
	_     [wire.CacheLine]byte

	consumed atomic.Uint64 // of the ring that comes in, for the other end
	_        [wire.CacheLine]byte
	taken    atomic.Uint64 // of this rank's inbox: the messages of the other
	_        [wire.CacheLine]byte
}

func newPairs(size int) *pairs {
	return &pairs{size: size, all: make([]atomic.Pointer[pair], size*size)}
}

// rings counts the pairs that have rings.
func (p *pairs) rings() (n int) {
	if p == nil {
		return 0
	}
	for i := range p.all {
		if one := p.all[i].Load(); one != nil && one.rings.Load() != nil {
			n++
		}
	}
	return n
}

// end is a rank's end of its pair with another, nil if there are no rings.
func (p *pairs) end(rank, other levels.Rank) *end {
	if p == nil || rank == other {
		return nil
	}
	low, high, at := rank, other, 0
	if low > high {
		low, high, at = high, low, 1
	}
	slot := &p.all[int(low)*p.size+int(high)]
	if slot.Load() == nil {
		slot.CompareAndSwap(nil, newPair())
	}
	return &slot.Load().ends[at]
}

func newPair() *pair {
	p := &pair{}
	for i := range p.ends {
		e, other := &p.ends[i], &p.ends[1-i]
		e.pair, e.at = p, i
		e.Wake = func() {} // nobody waits for room: there is the inbox
		e.In.Consumed, e.out.Consumed = &e.consumed, &other.consumed
	}
	return p
}

// open makes the rings, if there are none.
func (e *end) open() {
	if e.pair.rings.Load() == nil {
		e.pair.rings.CompareAndSwap(nil, &[2][]byte{wire.Aligned(shm.RingBytes), wire.Aligned(shm.RingBytes)})
	}
	e.hasRings()
}

// hasRings reports whether there are rings. The other rank may have made them.
func (e *end) hasRings() bool {
	if e.In.Mem == nil {
		rings := e.pair.rings.Load()
		if rings == nil {
			return false
		}
		e.out.Mem, e.In.Mem = rings[e.at], rings[1-e.at]
	}
	return true
}

// push sends a message by the ring, or reports false: then it has to go to the
// other's inbox, and is counted as there.
func (e *end) push(m *wire.Message, payload []byte) bool {
	if m.Addr == nil && e.hasRings() && e.isEmpty() && e.out.Push(m, 0, payload) {
		return true
	}
	e.boxed++
	return false
}

// isEmpty reports whether the other has taken all that went to its inbox.
func (e *end) isEmpty() bool {
	if e.seen != e.boxed {
		e.seen = e.pair.ends[1-e.at].taken.Load()
	}
	return e.seen == e.boxed
}

// poll hands over the messages in the ring from a rank.
func (e *end) poll(from levels.Rank, s wire.Sink) bool {
	some := false
	for e.hasRings() {
		_, payload, ok := e.In.Pop(&e.m)
		if !ok {
			break
		}
		some = true
		s.Deliver(from, &e.m, payload)
		e.In.Done()
	}
	return some
}

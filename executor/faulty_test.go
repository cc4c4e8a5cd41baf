package executor

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"unsafe"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Faults are what [Disturb] does to the messages that a rank hears. Links keep the
// order of what one rank says to another, and so does this.
type Faults struct {
	Seed uint64
	// Hold keeps messages back for a random number of polls, and hands over those
	// of different ranks in random order.
	Hold bool
	// Repeat lets a rank hear a message that it has heard before again, after every
	// so many; 0: never.
	Repeat int
	// At is called, by a goroutine of its own, when the rank has heard After
	// messages.
	At    func(rank levels.Rank)
	After int
}

// Disturb puts a faulty link under every engine of a world. No run may have begun.
// What At was called for has ended when started has.
func Disturb(w *World, f Faults) (started *sync.WaitGroup) {
	started = &sync.WaitGroup{}
	for r, e := range w.endpoints {
		e.mu.Lock()
		e.transport = &faulty{
			Transport: e.transport, rank: levels.Rank(r), size: len(w.endpoints), faults: f, started: started,
			draw: rand.New(rand.NewPCG(f.Seed, uint64(r))), held: make([][]heard, len(w.endpoints)),
		}
		e.mu.Unlock()
	}
	return started
}

// faulty is a transport whose messages come late, or more than once. Like the one
// below it is guarded by the engine's lock.
type faulty struct {
	wire.Transport
	rank    levels.Rank
	size    int
	faults  Faults
	started *sync.WaitGroup
	draw    *rand.Rand
	held    [][]heard // by sender
	waiting int       // of all
	old     []heard   // some that were handed over
	count   int       // handed over
	dead    bool      // neither says nor hears anything more
	// say, if not nil, may send a message in another way.
	say func(to levels.Rank, m *wire.Message, payload []byte) bool
	// touch, if not nil, is called before a peer's memory is read.
	touch func(from levels.Rank)
}

// heard is a message with its payload.
type heard struct {
	from    levels.Rank
	m       wire.Message
	payload []byte
}

// maxOld bounds what is kept to be said again.
const maxOld = 100

// poll takes what has come and hands over some of what waits.
func (f *faulty) Poll(s wire.Sink) bool {
	if f.dead {
		return false
	}
	did := f.Transport.Poll(late{s, f})
	first := f.draw.IntN(f.size)
	for i := range f.size {
		from := (first + i) % f.size
		n := len(f.held[from])
		if f.faults.Hold && n > 0 {
			n = f.draw.IntN(n + 1)
		}
		for range n {
			h := f.held[from][0]
			f.held[from] = f.held[from][1:]
			f.waiting--
			f.hand(s, h)
			did = true
		}
	}
	return did
}

// hand lets the engine hear a message, and then perhaps an old one.
func (f *faulty) hand(s wire.Sink, h heard) {
	s.Deliver(h.from, &h.m, h.payload)
	f.count++
	if f.count == f.faults.After && f.faults.At != nil {
		f.started.Go(func() { f.faults.At(f.rank) })
	}
	if f.faults.Repeat == 0 {
		return
	}
	if len(f.old) < maxOld {
		f.old = append(f.old, h)
	} else {
		f.old[f.draw.IntN(maxOld)] = h
	}
	if f.count%f.faults.Repeat == 0 {
		again := f.old[f.draw.IntN(len(f.old))]
		s.Deliver(again.from, &again.m, again.payload)
	}
}

// arm sees to it that the engine doesn't sleep over what waits here.
func (f *faulty) Arm() bool { return f.dead || f.waiting == 0 && f.Transport.Arm() }

func (f *faulty) Post(to levels.Rank, m *wire.Message, payload []byte) {
	if !f.dead && (f.say == nil || !f.say(to, m, payload)) {
		f.Transport.Post(to, m, payload)
	}
}

func (f *faulty) Put(to levels.Rank, m *wire.Message, src []byte, token int32) bool {
	return !f.dead && f.Transport.Put(to, m, src, token)
}

func (f *faulty) Flush(s wire.Sink) bool { return !f.dead && f.Transport.Flush(s) }

func (f *faulty) Remote(to levels.Rank) bool { return f.Transport.Remote(to) }

func (f *faulty) Holds(from levels.Rank, p unsafe.Pointer, n int64) bool {
	if f.touch != nil {
		f.touch(from)
	}
	return f.Transport.Holds(from, p, n)
}

func (f *faulty) Read(from levels.Rank, address uint64, dst []byte) error {
	if f.touch != nil {
		f.touch(from)
	}
	return f.Transport.Read(from, address, dst)
}

// late is the engine as the transport below sees it.
type late struct {
	wire.Sink
	f *faulty
}

func (l late) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	l.f.held[from] = append(l.f.held[from], heard{from, *m, bytes.Clone(payload)})
	l.f.waiting++
}

// Touched calls f before each look of a disturbed rank into a peer's memory.
func Touched(w *World, rank levels.Rank, f func(from levels.Rank)) {
	e := w.endpoints[rank]
	e.mu.Lock()
	defer e.mu.Unlock()
	under, _ := e.transport.(*faulty)
	under.touch = f
}

// Advance lets all ranks have made that many calls on communicator 0, and sent each
// other as many messages, before anything begins.
func Advance(w *World, by uint32) {
	for _, e := range w.endpoints {
		e.mu.Lock()
		e.comm(0).seq += by
		e.tickets += by
		for i := range e.peers {
			e.peers[i].said += by
			e.peers[i].heard += by
		}
		e.mu.Unlock()
	}
}

// StrayCalls is for tests of another package.
const StrayCalls = strayCalls

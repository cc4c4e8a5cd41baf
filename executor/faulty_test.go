package executor

import (
	"bytes"
	"math/rand/v2"
	"sync"

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

// Disturbance is what Disturb has started.
type Disturbance struct {
	sync.WaitGroup
	mu       sync.Mutex
	repeated int
}

// Repeated is how many messages were heard twice.
func (d *Disturbance) Repeated() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.repeated
}

// Disturb puts a faulty link under every engine of a world. No run may have begun.
func Disturb(w *World, f Faults) *Disturbance {
	d := &Disturbance{}
	for r, e := range w.endpoints {
		e.mu.Lock()
		e.transport = &faulty{
			transport: e.transport, rank: levels.Rank(r), size: len(w.endpoints), faults: f, started: d,
			draw: rand.New(rand.NewPCG(f.Seed, uint64(r))), held: make([][]heard, len(w.endpoints)),
		}
		e.mu.Unlock()
	}
	return d
}

// faulty is a transport whose messages come late, or more than once. Like the one
// below it is guarded by the engine's lock.
type faulty struct {
	transport
	rank    levels.Rank
	size    int
	faults  Faults
	started *Disturbance
	draw    *rand.Rand
	held    [][]heard // by sender
	waiting int       // of all
	old     []heard   // some that were handed over
	count   int       // handed over
	dead    bool      // neither says nor hears anything more
}

// heard is a message with its payload.
type heard struct {
	from    levels.Rank
	m       message
	payload []byte
}

// maxOld bounds what is kept to be said again.
const maxOld = 100

// poll takes what has come and hands over some of what waits.
func (f *faulty) poll(s sink) bool {
	if f.dead {
		return false
	}
	did := f.transport.poll(late{s, f})
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
func (f *faulty) hand(s sink, h heard) {
	s.deliver(h.from, &h.m, h.payload)
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
		f.started.mu.Lock()
		f.started.repeated++
		f.started.mu.Unlock()
		again := f.old[f.draw.IntN(len(f.old))]
		s.deliver(again.from, &again.m, again.payload)
	}
}

// arm sees to it that the engine doesn't sleep over what waits here.
func (f *faulty) arm() bool { return f.waiting == 0 && f.transport.arm() }

func (f *faulty) post(to levels.Rank, m *message, payload []byte) {
	if !f.dead {
		f.transport.post(to, m, payload)
	}
}

func (f *faulty) put(to levels.Rank, m *message, src []byte, token int32) bool {
	return !f.dead && f.transport.put(to, m, src, token)
}

func (f *faulty) flush(s sink) bool { return !f.dead && f.transport.flush(s) }

// late is the engine as the transport below sees it.
type late struct {
	sink
	f *faulty
}

func (l late) deliver(from levels.Rank, m *message, payload []byte) {
	l.f.held[from] = append(l.f.held[from], heard{from, *m, bytes.Clone(payload)})
	l.f.waiting++
}

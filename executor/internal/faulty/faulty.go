// Package faulty makes a rank hear its messages late, or more than once, or not at all.
//
// It decorates a link, with its sleeper and its memory, and is for tests: engines must
// cope with whatever it does. Like all links it keeps the order of messages between two
// ranks. It draws from a seed only, so a failing test can be repeated.
//
//	f := faulty.New(faulty.Under{Link: l, Sleeper: s, Memory: m}, rank, size, faulty.Faults{Seed: 1, Hold: true})
package faulty

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"unsafe"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Faults are the disturbances of the messages to a rank. The zero value is none.
type Faults struct {
	Seed uint64
	// Hold keeps messages back for a random number of polls, and hands over those of
	// different ranks in random order.
	Hold bool
	// Repeat lets a rank hear an earlier message again, after every so
	// many; 0: never.
	Repeat int
	// At is called, by a goroutine of its own, when the rank has heard After messages.
	At    func(rank levels.Rank)
	After int
}

// Under is the link below a faulty one.
type Under struct {
	wire.Link
	wire.Sleeper
	wire.Memory
}

// Link is a link with late and repeated messages, with its sleeper and its
// memory. Like those below it is guarded by the engine's lock.
type Link struct {
	Under
	// Say, if not nil, may send a message in another way; then it returns true.
	Say func(to levels.Rank, m *wire.Message, payload []byte) bool
	// Touch, if not nil, is called before a peer's memory is read.
	Touch func(from levels.Rank)
	// Draw is the source of all randomness here.
	Draw *rand.Rand
	// Started are the calls of Faults.At.
	Started *sync.WaitGroup

	rank    levels.Rank
	faults  Faults
	held    [][]heard // by sender
	waiting int       // of all
	old     []heard   // some already handed over
	count   int       // handed over
	dead    bool      // neither says nor hears anything more
}

var (
	_ wire.Link    = (*Link)(nil)
	_ wire.Dialler = (*Link)(nil)
	_ wire.Sleeper = (*Link)(nil)
	_ wire.Memory  = (*Link)(nil)
)

// heard is a message with its payload.
type heard struct {
	from    levels.Rank
	m       wire.Message
	payload []byte
}

// maxOld bounds the messages kept for repetition.
const maxOld = 100

// New puts faults over the link of a rank in a world of so many.
func New(under Under, rank levels.Rank, size int, f Faults) *Link {
	return &Link{
		Under: under, rank: rank, faults: f, Started: &sync.WaitGroup{},
		Draw: rand.New(rand.NewPCG(f.Seed, uint64(rank))), held: make([][]heard, size),
	}
}

// Kill makes the rank neither say nor hear anything more.
func (f *Link) Kill() { f.dead = true }

// Poll takes the messages from below and hands over some of those held back.
func (f *Link) Poll(s wire.Sink) bool {
	if f.dead {
		return false
	}
	did := f.Link.Poll(late{s, f})
	first := f.Draw.IntN(len(f.held))
	for i := range f.held {
		from := (first + i) % len(f.held)
		n := len(f.held[from])
		if f.faults.Hold && n > 0 {
			n = f.Draw.IntN(n + 1)
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
func (f *Link) hand(s wire.Sink, h heard) {
	s.Deliver(h.from, &h.m, h.payload)
	f.count++
	if f.count == f.faults.After && f.faults.At != nil {
		f.Started.Go(func() { f.faults.At(f.rank) })
	}
	if f.faults.Repeat == 0 {
		return
	}
	if len(f.old) < maxOld {
		f.old = append(f.old, h)
	} else {
		f.old[f.Draw.IntN(maxOld)] = h
	}
	if f.count%f.faults.Repeat == 0 {
		again := f.old[f.Draw.IntN(len(f.old))]
		s.Deliver(again.from, &again.m, again.payload)
	}
}

// Arm keeps the engine awake while messages are held back.
func (f *Link) Arm() bool { return f.dead || f.waiting == 0 && f.Sleeper.Arm() }

// Post sends m, unless the rank is dead or Say has.
func (f *Link) Post(to levels.Rank, m *wire.Message, payload []byte) {
	if !f.dead && (f.Say == nil || !f.Say(to, m, payload)) {
		f.Link.Post(to, m, payload)
	}
}

// Put moves src, unless the rank is dead.
func (f *Link) Put(to levels.Rank, m *wire.Message, src []byte, token int32) bool {
	return !f.dead && f.Link.Put(to, m, src, token)
}

// Flush moves on the messages on their way, unless the rank is dead.
func (f *Link) Flush(s wire.Sink) bool { return !f.dead && f.Link.Flush(s) }

// IsOpen asks the link below, if its connections are opened when they are needed.
func (f *Link) IsOpen(to levels.Rank) bool {
	d, ok := f.Link.(wire.Dialler)
	return !ok || d.IsOpen(to)
}

// Number asks the link below.
func (f *Link) Number(to levels.Rank) (number uint32, ok bool) {
	if r, may := f.Link.(wire.Renewer); may {
		return r.Number(to)
	}
	return 0, false
}

// Renew also drops the messages held back from a rank.
func (f *Link) Renew(to levels.Rank, number uint32, s wire.Sink) {
	f.waiting -= len(f.held[to])
	f.held[to] = nil
	f.Link.(wire.Renewer).Renew(to, number, s)
}

// Holds calls Touch first.
func (f *Link) Holds(from levels.Rank, p unsafe.Pointer, n int64) bool {
	f.touch(from)
	return f.Memory.Holds(from, p, n)
}

// Read calls Touch first.
func (f *Link) Read(from levels.Rank, address uint64, dst []byte) error {
	f.touch(from)
	return f.Memory.Read(from, address, dst)
}

func (f *Link) touch(from levels.Rank) {
	if f.Touch != nil {
		f.Touch(from)
	}
}

// late is the engine as the link below sees it.
type late struct {
	wire.Sink
	f *Link
}

func (l late) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	l.f.held[from] = append(l.f.held[from], heard{from, *m, bytes.Clone(payload)})
	l.f.waiting++
}

package executor

import (
	"slices"
	"sync"

	"github.com/tierflow/tierflow/executor/internal/ballot"
	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Disturb puts a faulty link under every engine of a world. No run may have begun.
// What At was called for has ended when started has.
func Disturb(w *World, f faulty.Faults) (started *sync.WaitGroup) {
	started = &sync.WaitGroup{}
	for r, e := range w.endpoints {
		e.mu.Lock()
		link := faulty.New(faulty.Under{Link: e.link, Sleeper: e.sleeper, Memory: e.memory}, levels.Rank(r), len(w.endpoints), f)
		link.Started = started
		e.link, e.sleeper, e.memory = link, link, link
		e.mu.Unlock()
	}
	return started
}

// OnLink calls f with the link of a rank, and the engine's lock held.
func OnLink(w *World, rank levels.Rank, f func(l wire.Link)) {
	e := w.endpoints[rank]
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e.link)
}

// Touched calls f before each look of a disturbed rank into a peer's memory.
func Touched(w *World, rank levels.Rank, f func(from levels.Rank)) {
	OnLink(w, rank, func(l wire.Link) {
		under, _ := l.(*faulty.Link)
		under.Touch = f
	})
}

// Advance lets all ranks have made that many calls on communicator 0, and sent each
// other as many messages, before anything begins.
func Advance(w *World, by uint32) {
	for _, e := range w.endpoints {
		e.mu.Lock()
		e.ensureComm(0).seq += by
		e.tickets += by
		for r := range levels.Rank(e.peers.size) {
			e.peers.at(r).outTicket += by
			e.peers.at(r).inTicket += by
		}
		e.mu.Unlock()
	}
}

// Gather shows the engines of several worlds, each of which has one of n, as one world.
func Gather(worlds []*World) *World {
	w := &World{config: worlds[0].config, limits: worlds[0].limits, endpoints: make([]*Endpoint, len(worlds))}
	for r, one := range worlds {
		w.endpoints[r] = one.endpoints[r]
	}
	return w
}

// Listening replaces the control plane of a world.
func Listening(w *World, to func(ControlPlane) ControlPlane) { w.control.job = to(w.control.job) }

// Lose tells a rank's world that another one is lost.
func Lose(w *World, lost levels.Rank, err error) { w.control.hearLost(lost, err) }

// Kept counts the payloads that a rank keeps.
func (e *Endpoint) Kept() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n = len(e.store.all)
	for _, free := range e.store.free {
		n -= len(free)
	}
	return n
}

// SpareLoans counts the pieces of shared memory that no call of a rank uses.
func (e *Endpoint) SpareLoans() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.loans.spare)
}

// Drew lets a rank have drawn that many numbers.
func (e *Endpoint) Drew(numbers uint64) { e.drawn.Store(numbers) }

// Comms counts the communicators that a rank knows of.
func (e *Endpoint) Comms() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.comms)
}

// GoesOn reports whether the rank is decided on as one that goes on after the communicator of all.
func (e *Endpoint) GoesOn() bool {
	m := e.voter.Find(ballot.Topic{})
	return m != nil && m.Decision() != nil && m.Decision().Members.Has(slices.Index(m.Members, e.rank))
}

// Failed tells whether a communicator is broken or closed here.
func (c *Comm) Failed() bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.broken != nil
}

// Told tells whether this rank breaks the communicator, and has told the other processes.
func (c *Comm) Told() bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	if c.announcement == nil {
		return false
	}
	select {
	case <-c.announcement.told:
		return true
	default:
		return false
	}
}

// Goodbyes counts those that a rank has heard on a communicator.
func (c *Comm) Goodbyes() int {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return len(c.departures) + len(c.heldDepartures)
}

// Budget is how much a rank may send to another one without credit, bytes.
func (e *Endpoint) Budget(to levels.Rank) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peers.at(to).Budget()
}

// strayLooks calls look before each look into rings that a straight call doesn't need.
type strayLooks struct {
	Sharer
	look func()
}

func (s strayLooks) PollNode(to wire.Sink) bool {
	s.look()
	return s.Sharer.PollNode(to)
}

// OnStray calls look before each such look of a bound run.
func OnStray(r *Run, look func()) { r.straight.node = strayLooks{r.straight.node, look} }

// StrayCalls is for tests of another package.
const StrayCalls = strayCalls

// SlotRing returns the size of a rank's ring of slots, where the next call's begin, and
// whether a call has some.
func SlotRing(w *World, rank levels.Rank) (size, next int, busy bool) {
	e := w.endpoints[rank]
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.slots.mem), e.slots.next, e.slots.run != nil
}

// Poll is one look at what has come for the rank; it reports whether there was anything.
func (e *Endpoint) Poll() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.makeProgress()
}

// Probe sends what a rank sends while it stands still in a call that has ended meanwhile.
func (c *Comm) Probe(peer levels.Rank, seq uint32) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	c.e.sendPresence(peer, c.id, seq, c.findRecord(seq).digest)
}

// Waiting describes the wait of each run and transfer on its way on this rank.
func (e *Endpoint) Waiting() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.listWaiting()
}

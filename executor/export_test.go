package executor

import (
	"context"
	"fmt"
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

// Limited tells whether calls on a communicator fail because a rank has left.
func (c *Comm) Limited() bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.limit != nil
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

// Seize takes a rank's engine from all drivers: it moves when [Endpoint.Poll] is called.
func Seize(e *Endpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.beginDriving(context.Background(), nil)
}

// Release gives a seized engine back.
func Release(e *Endpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.endDriving()
}

// Hear lets a rank take messages, and execute no step.
func (e *Endpoint) Hear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.link.Poll(e.sink())
}

// Moves reports whether a failure waits to be carried out, whether [Endpoint.Poll] would execute a step, and the least of
// the budgets to other ranks, bytes.
func (e *Endpoint) Moves() (deferred, steps bool, budget int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		steps = steps || (len(r.ready) > 0 || r.stepsLeft == 0 && !r.parked) && !r.isStopped()
	}
	for _, p := range e.peers.met() {
		budget = min(budget, p.Budget())
	}
	return len(e.failing)+len(e.asking) > 0, steps, budget
}

// CarryOut carries it out.
func (e *Endpoint) CarryOut() { e.carryOut() }

// Leftovers lists what a rank keeps after all its calls have ended and nothing is on its way: bytes of budget out or owed
// that no message accounts for, payloads, sends, runs. What is about dead ranks doesn't count.
func (w *World) Leftovers(dead ...levels.Rank) (all []string) {
	for r, e := range w.endpoints {
		if slices.Contains(dead, levels.Rank(r)) {
			continue
		}
		add := func(n int, what string) {
			if n != 0 {
				all = append(all, fmt.Sprintf("rank %d: %d %s", r, n, what))
			}
		}
		add(e.Kept(), "payloads kept")
		add(len(e.puts.all)-len(e.puts.free), "payloads that have not left")
		add(len(e.runs), "runs")
		for peer, other := range w.endpoints {
			if slices.Contains(dead, levels.Rank(peer)) {
				continue
			}
			there, here := e.peers.at(levels.Rank(peer)), other.peers.at(levels.Rank(r))
			limit := e.peers.NearBudget
			if there.far {
				limit = e.peers.FarBudget
			}
			add(int(max(0, limit)-there.Budget()-here.Owed()), fmt.Sprintf("bytes of the budget to rank %d", peer))
		}
		for id, c := range e.comms {
			add(len(c.earlyMessages), fmt.Sprintf("early messages on %v", id))
		}
	}
	return all
}

// Renew makes the flow control of all ranks as new; nothing may be on its way.
func (w *World) Renew() {
	for _, e := range w.endpoints {
		for peer := range w.endpoints {
			e.peers.at(levels.Rank(peer)).Renew(0)
		}
	}
}

// AwaitApart returns when a rank's process has done what it does beside its control plane.
func AwaitApart(e *Endpoint) { e.world.control.background.Wait() }

// LookAround is what a driver does with each tick of its sleep.
func LookAround(e *Endpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lookAround()
}

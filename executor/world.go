package executor

import (
	"errors"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Config is what a world may be told. The zero value is ready to use.
type Config struct {
	// EagerMax is the largest payload, in bytes, sent without credit; negative: none.
	// 0: 4 KiB, and between processes on different nodes, where a credit takes a round
	// trip, also what a call sends first to a rank, up to 64 KiB of whole messages.
	EagerMax int64
	// EagerBudget is how many bytes a rank may have sent to another without credit and
	// without their having been consumed. 0: 64 KiB, and 256 KiB to another node; at
	// most 1 GiB.
	EagerBudget int64
	// StallAfter is how long a run waits before it is reported to Log, with what
	// it waits for; doubled after each report. 0: 10 s; negative: never.
	StallAfter time.Duration
	// CloseTimeout bounds how long Close waits for ranks of other processes that live
	// and have not closed yet, see [World.Close]. 0: 30 s.
	CloseTimeout time.Duration
	// Log gets stall reports and failures. nil: none.
	Log *slog.Logger
	// Hooks are called by the engines. Zero: none.
	Hooks trace.Hooks
	// NoPeerReads keeps processes from reading each other's memory by
	// process_vm_readv, as if the kernel forbade it.
	NoPeerReads bool
	// Congestion is the TCP congestion control of connections to other nodes, one that
	// the kernel has and allows, such as reno. Empty: the system's choice.
	Congestion string
	// RecorderEvents is how many of the last events each rank keeps, see package
	// flight. 0: 1024 if the rank is a process, 256 for goroutine ranks, whose rings
	// share a cache; negative: none, and no recording.
	RecorderEvents int
	// Stalls gets stall reports in place of Log. nil: Log.
	Stalls *slog.Logger
	// Link, if not nil, makes messages take their time between ranks.
	Link Shaper
}

func (c Config) withDefaults() Config {
	if c.Hooks.Epoch.IsZero() {
		c.Hooks.Epoch = time.Now()
	}
	if c.Stalls == nil {
		c.Stalls = c.Log
	}
	if c.CloseTimeout <= 0 {
		c.CloseTimeout = 30 * time.Second
	}
	if c.StallAfter == 0 {
		c.StallAfter = 10 * time.Second
	}
	return c
}

// Shaper delays messages to emulate a network between goroutine ranks.
type Shaper interface {
	// Due says when a message of n bytes that is sent now will have arrived; zero
	// for at once. It is called by many goroutines. For one pair of ranks the
	// answers never decrease, and either all are zero or none is.
	Due(from, to levels.Rank, n int64, now time.Time) time.Time
}

// World is all ranks of a job: those of this process, goroutine ranks or a single
// one, and what is needed to reach the others.
type World struct {
	config    Config
	limits    flow.Limits // derived from config
	endpoints []*Endpoint // by rank; nil for a rank of another process
	inboxes   []*inbox
	pairs     *pairs       // nil: goroutine ranks have none but the inboxes
	clock     *clock       // nil unless shaped
	spin      int          // yields before a driver sleeps
	control   *control     // nil for goroutine ranks
	combining atomic.Int32 // operations of callers that are running
	exited    sync.Map     // numbers of goroutines, as text, that an operation has ended

	mu        sync.Mutex
	closed    bool
	recordsTo recorderPath
}

// NewWorld makes a world of n ranks, which exists until Close.
func NewWorld(n int, config Config) *World {
	w := &World{config: config.withDefaults(), limits: flow.NewLimits(config.EagerMax, config.EagerBudget)}
	if w.config.RecorderEvents == 0 {
		w.config.RecorderEvents = flight.DefaultEvents / 4
	}
	// With a core for every rank a spin saves two switches and is about as long as
	// they take, tens of microseconds; with less, a waiting rank holds up the one it
	// waits for.
	looks, processors := fewestPolls, runtime.GOMAXPROCS(0)
	w.spin = 1
	if n <= processors {
		w.spin, looks = 400, mostPolls
	}
	if n < crowd*processors && config.Link == nil {
		w.pairs = newPairs(n)
	}
	all := make([]levels.Rank, n)
	for r := range all {
		all[r] = levels.Rank(r)
		box := newInbox()
		w.inboxes = append(w.inboxes, box)
		w.endpoints = append(w.endpoints, newEndpoint(w, all[r], n, &local{inbox: box, world: w, rank: all[r], polls: looks}))
	}
	for _, e := range w.endpoints {
		e.comm(0).define(all)
	}
	if config.Link != nil {
		w.clock = newClock(w)
	}
	return w
}

// Size is the number of ranks.
func (w *World) Size() int { return len(w.endpoints) }

// Endpoint is the engine of a rank.
func (w *World) Endpoint(r levels.Rank) *Endpoint { return w.endpoints[r] }

// carry takes a message to a rank's inbox, at once or when it is due.
func (w *World) carry(from, to levels.Rank, m *wire.Message, payload []byte) {
	if w.clock != nil {
		n := int64(len(payload))
		if m.Kind == wire.Data || m.Kind == wire.Arrived {
			n = m.Size
		}
		now := time.Now()
		if due := w.config.Link.Due(from, to, n, now); due.After(now) {
			w.clock.hold(due, from, to, m, payload)
			return
		}
	}
	w.inboxes[to].push(from, m, payload)
}

// local calls f for each rank of this process.
func (w *World) local(f func(e *Endpoint)) {
	for _, e := range w.endpoints {
		if e != nil {
			f(e)
		}
	}
}

// fail ends a communicator on all ranks, because of what happened on one of this
// process. The other processes are told first: once the communicator is broken here, a
// rank may close it and end the job, and nothing could be told any more.
func (w *World) fail(c *Comm, by levels.Rank, err error) {
	f, must := c.decide(by, err)
	if !must {
		return
	}
	if w.control != nil {
		w.control.abort(c, f.peer, f.err)
	}
	w.failHere(c.id, c.members(), f.peer, f.err)
}

// failHere ends a communicator on the ranks of this process, if they are among its
// members of the world, nil for all. First every rank is marked, so that no one writes
// into a buffer of another any more; only then do runs return.
func (w *World) failHere(comm CommID, members rankSet, by levels.Rank, err error) {
	w.local(func(e *Endpoint) { e.mark(comm, members, by, err) })
	w.local(func(e *Endpoint) { e.settle(comm) })
}

// failLater ends the runs of a communicator from one on, because of a rank that has
// left. Each process hears of that by itself; here all ranks are marked before one
// returns, as in failHere.
func (w *World) failLater(f failure) {
	members := f.comm.members()
	w.local(func(e *Endpoint) { e.restrict(f, members) })
	w.local(func(e *Endpoint) { e.settle(f.comm.id) })
}

// Fail ends the communicators that a rank is in, those made later too, on all ranks
// because of what happened on it: a panic, for example.
func (w *World) Fail(by levels.Rank, err error) {
	// A rank that another one's failure has ended is not the culprit, and its word
	// may come before that of who is.
	if peer := (*PeerError)(nil); errors.As(err, &peer) && peer.world > 0 {
		by, err = peer.world-1, peer.Err
	}
	if w.control != nil {
		w.control.failed(by, err)
	}
	w.failAll(by, err)
}

// failAll ends what a rank is in on the ranks of this process, now and later.
func (w *World) failAll(by levels.Rank, err error) {
	w.local(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.lose(by, err)
	})
	w.failSome(by, err, func(c *Comm) bool { return c.member(by) })
}

// failSome ends the communicators that pick picks on the ranks of this process.
func (w *World) failSome(by levels.Rank, err error, pick func(c *Comm) bool) {
	ids := map[CommID]bool{}
	w.local(func(e *Endpoint) {
		for _, id := range e.markSome(by, err, pick) {
			ids[id] = true
		}
	})
	w.local(func(e *Endpoint) {
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			e.settle(id)
		}
	})
}

// disown ends the communicators that came of call seq on another one, because rank by
// failed in that call and is a member. Ranks of this process that make one of them later
// find it broken.
func (w *World) disown(comm CommID, seq uint32, by levels.Rank, err error) {
	w.local(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if c := e.comms[comm]; c != nil {
			c.disowned = append(c.disowned, disowned{seq, by, err})
		}
	})
	made := func(c *Comm) bool { return c.parent == origin{comm, seq, true} && c.member(by) }
	w.failSome(by, err, made)
	ids := map[CommID]bool{} // also of those that were broken before, by another one who disowns the call
	w.local(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for id, c := range e.comms {
			if made(c) {
				ids[id] = true
				c.miss(by) // it will never say goodbye there
			}
		}
	})
	for id := range ids {
		w.tellDisowner(id, by, err)
	}
}

// tellDisowner tells a rank the number of a communicator that it has disowned. The rank
// then lets go of what has come for it.
func (w *World) tellDisowner(id CommID, by levels.Rank, err error) {
	if e := w.endpoints[by]; e != nil {
		e.mark(id, nil, by, err)
	} else {
		w.control.tellDisowner(id, by, err)
	}
}

// recorded is what a rank runs or ran as call seq on a communicator.
func (w *World) recorded(rank levels.Rank, comm CommID, seq uint32) *description {
	if e := w.endpoints[rank]; e != nil {
		return e.recorded(comm, seq)
	}
	return w.control.ask(rank, comm, seq)
}

// inquire takes a question to a rank; a mismatch that it shows ends the
// communicator.
func (w *World) inquire(q inquiry) {
	if e := w.endpoints[q.to]; e != nil {
		e.answer(q)
		return
	}
	w.control.inquire(q)
}

// Close ends the world: runs that are still on their way return [ErrClosed]. It
// returns when all its goroutines have ended; calling it again does nothing.
//
// A process waits for those it has exchanged data with, and for its neighbours in
// the job's control tree, to close too: what it sent may still be on its way, and
// its neighbours speak with others through it. Those that die meanwhile are waited
// for no longer; those that still live after [Config.CloseTimeout] are the error.
func (w *World) Close() error {
	w.RefuseOperations()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.local(func(e *Endpoint) {
		e.markSome(e.rank, ErrClosed, func(*Comm) bool { return true })
	})
	w.local(func(e *Endpoint) {
		for _, id := range e.commIDs(func(*Comm) bool { return true }) {
			e.settle(id)
		}
	})
	w.local((*Endpoint).stop)
	if w.clock != nil {
		w.clock.stop()
	}
	var err error
	if w.control != nil {
		err = w.control.close()
	}
	return errors.Join(err, w.endRecordings())
}

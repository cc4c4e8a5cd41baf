package executor

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/trace"
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
	// RecorderEvents is how many of the last events each rank keeps, see package
	// flight. 0: 1024, and 256 for goroutine ranks, whose rings share a cache; negative:
	// none, and no recording.
	RecorderEvents int
	// Stalls gets stall reports in place of Log. nil: Log.
	Stalls *slog.Logger
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

// World is all ranks of a job: those of this process, goroutine ranks or a single
// one, and what is needed to reach the others.
type World struct {
	config    Config
	limits    flow.Limits               // derived from config
	endpoints []*Endpoint               // by rank; nil for a rank of another process
	spin      int                       // yields before a driver sleeps
	stop      func(ctx context.Context) // see Setup; may be nil
	control   *control                  // nil if all ranks live here
	combining atomic.Int32              // operations of callers that are running
	exited    sync.Map                  // numbers of goroutines, as text, that an operation has ended

	mu        sync.Mutex
	closed    bool
	recordsTo recorderPath
}

// Size is the number of ranks.
func (w *World) Size() int { return len(w.endpoints) }

// Endpoint is the engine of a rank.
func (w *World) Endpoint(r levels.Rank) *Endpoint { return w.endpoints[r] }

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
	var err error
	switch {
	case w.control != nil:
		err = w.control.close()
	case w.stop != nil:
		w.stop(context.Background())
	}
	return errors.Join(err, w.endRecordings())
}

package executor

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// failComm ends a communicator on all ranks, because of what happened on one of this
// process. The other processes are told first: once the communicator is broken here, a
// rank may close it and end the job, and nothing could be told any more.
func (w *World) failComm(c *Comm, by levels.Rank, err error) {
	f, settled, must := c.decideBreak(by, err)
	if !must {
		return
	}
	defer close(settled)
	if w.control != nil {
		w.control.tellAbort(c, f.peer, f.err)
	}
	w.failHere(c.id, c.members(), f.peer, f.err)
}

// failHere ends a communicator on the ranks of this process, if they are among its
// members of the world, nil for all. First every rank is marked, so that no one writes
// into a buffer of another any more; only then do runs return.
func (w *World) failHere(comm CommID, members rankSet, by levels.Rank, err error) {
	w.eachLocal(func(e *Endpoint) { e.markBroken(comm, members, by, err) })
	w.eachLocal(func(e *Endpoint) { e.endBroken(comm) })
}

// failLater ends the runs of a communicator from one on, because of a rank that has
// left. Each process hears of that by itself; here all ranks are marked before one
// returns, as in failHere.
func (w *World) failLater(f failure) {
	members := f.comm.members()
	w.eachLocal(func(e *Endpoint) { e.limitRuns(f, members) })
	w.eachLocal(func(e *Endpoint) { e.endBroken(f.comm.id) })
}

// Fail ends the communicators that a rank is in, those made later too, on all ranks
// because of what happened on it: a panic, for example.
func (w *World) Fail(by levels.Rank, err error) {
	// A rank ended by another one's failure is not the culprit, and its word may come
	// before the culprit's.
	if peer := (*PeerError)(nil); errors.As(err, &peer) && peer.world > 0 {
		by, err = peer.world-1, peer.Err
	}
	if w.control != nil {
		w.control.tellFailed(by, err)
	}
	w.failRank(by, err)
}

// failRank ends what a rank is in on the ranks of this process, now and later.
func (w *World) failRank(by levels.Rank, err error) {
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.noteLost(by, err)
	})
	w.failWhere(by, err, func(c *Comm) bool { return c.isMember(by) })
}

// failWhere ends the communicators for which pick is true on the ranks of this process.
func (w *World) failWhere(by levels.Rank, err error, pick func(c *Comm) bool) {
	ids := map[CommID]bool{}
	w.eachLocal(func(e *Endpoint) {
		for _, id := range e.markBrokenWhere(by, err, pick) {
			ids[id] = true
		}
	})
	w.eachLocal(func(e *Endpoint) {
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			e.endBroken(id)
		}
	})
}

// disownCall ends the communicators that came of call seq on another one, because rank by
// failed in that call and is a member. Ranks of this process that make one of them later
// find it broken.
func (w *World) disownCall(comm CommID, seq uint32, by levels.Rank, err error) {
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if c := e.comms[comm]; c != nil {
			c.disowned = append(c.disowned, disowned{seq, by, err})
		}
	})
	made := func(c *Comm) bool { return c.parent == origin{comm, seq, true} && c.isMember(by) }
	w.failWhere(by, err, made)
	ids := map[CommID]bool{} // also of those that were broken before, by another one who disowns the call
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for id, c := range e.comms {
			if made(c) {
				ids[id] = true
				c.markAway(by) // it will never say goodbye there
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
		e.markBroken(id, nil, by, err)
	} else {
		w.control.tellDisowner(id, by, err)
	}
}

// recordedCall returns what a rank runs or ran as call seq on a communicator.
func (w *World) recordedCall(rank levels.Rank, comm CommID, seq uint32) *description {
	if e := w.endpoints[rank]; e != nil {
		return e.recordedCall(comm, seq)
	}
	return w.control.askCall(rank, comm, seq)
}

// deliverInquiry takes a question to a rank. A mismatch that it shows ends the
// communicator.
func (w *World) deliverInquiry(q inquiry) {
	if e := w.endpoints[q.to]; e != nil {
		e.answerInquiry(q)
		return
	}
	w.control.inquire(q)
}

// answerInquiry compares a question with what this rank has called. One about a call
// that it hasn't come to yet is kept for then, once. The lock must not be held.
func (e *Endpoint) answerInquiry(q inquiry) {
	e.mu.Lock()
	c := e.comms[q.comm]
	if c == nil || c.local == nil { // it is asked again
		e.mu.Unlock()
		return
	}
	m := wire.Message{Kind: wire.Probe, Comm: q.comm, Seq: q.seq, Digest: q.digest}
	var err error
	switch p := c.remembered(q.seq); {
	case c.broken != nil && c.broken != ErrClosed:
	case c.hasEnded(q.seq) && c.numberOf(q.from) >= 0:
		if p.seq == q.seq && p.digest != q.digest {
			err = newMismatch(c.me, c.numberOf(q.from), q.seq, p.call, q.call)
		}
	case c.broken == nil && !slices.Contains(c.early, earlyMessage{m, q.from, -1}):
		c.early = append(c.early, earlyMessage{m, q.from, -1})
	}
	e.mu.Unlock()
	if err != nil {
		e.world.failComm(c, e.rank, err)
	}
}

// recordedCall returns what this rank runs or ran under a number.
func (e *Endpoint) recordedCall(comm CommID, seq uint32) *description {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.comms[comm]; c != nil && c.remembered(seq).call != nil {
		return c.remembered(seq).call
	}
	return unknownCall
}

// mismatchError asks the peer what it runs. The lock must not be held.
func (c *Comm) mismatchError(peer levels.Rank, seq uint32) error {
	mine, theirs := c.e.recordedCall(c.id, seq), c.e.world.recordedCall(peer, c.id, seq)
	return newMismatch(c.me, c.numberOf(peer), seq, mine, theirs)
}

// admitCall returns why a call can't begin, nil if it can. A context that is done
// already ends the communicator, as one that is done later does: the other ranks would
// wait in vain for this call. The lock is held, but not while the others are told.
func (c *Comm) admitCall(ctx context.Context) error {
	err := c.whyUnusable()
	if ctx == nil {
		return errNoContext
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
		c.e.mu.Unlock()
		c.e.world.failComm(c, c.e.rank, err)
		c.e.mu.Lock()
	}
	return err
}

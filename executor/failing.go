package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// failComm ends a communicator on all ranks, because of what happened on one of this
// process. The other processes are told first: once the communicator is broken here, a
// rank may close it and end the job, and nothing could be told any more.
func (w *World) failComm(c *Comm, by levels.Rank, err error) {
	f, way, must := c.decideBreak(by, err)
	if !must {
		return
	}
	defer close(way.settled)
	defer w.letGo(c.id)
	if w.control != nil {
		w.control.tellAbort(c, f.peer, f.err)
	}
	close(way.told)
	w.failHere(c.id, c.members(), f.peer, f.err)
}

// letGo ends one keep. The ranks of this process forget the communicator if all have left it.
func (w *World) letGo(id CommID) {
	w.keeping.Lock()
	w.kept[id]--
	if w.kept[id] == 0 {
		delete(w.kept, id)
	}
	w.keeping.Unlock()
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if c := e.comms[id]; c != nil {
			c.forgetIfLeft()
		}
	})
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
	c := f.comm
	c.e.mu.Lock()
	left := c.left // then others may have forgotten it
	if !left {
		w.keep(c.id)
	}
	c.e.mu.Unlock()
	if left {
		c.e.endBroken(c.id)
		return
	}
	defer w.letGo(c.id)
	members := c.members()
	w.eachLocal(func(e *Endpoint) { e.limitRuns(f, members) })
	w.eachLocal(func(e *Endpoint) { e.endBroken(c.id) })
}

// Fail ends the communicators that a rank is in, those made later too, on all ranks
// because of what happened on it: a panic, for example.
func (w *World) Fail(by levels.Rank, err error) {
	by, err = originOf(by, err)
	if e := w.endpoints[by]; e != nil {
		e.voter.Quit() // before the others count on it
	}
	if w.control != nil {
		w.control.tellFailed(by, err)
	}
	w.endRank(by)
	w.failRank(by, err)
}

// endRank notes that a rank has said that it is no more in anything.
func (w *World) endRank(by levels.Rank) {
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.ended = append(e.ended, by)
	})
}

// originOf returns the rank where a failure began, and its error. A rank ended by another
// one's failure is not the culprit, and its word may come before the culprit's.
func originOf(by levels.Rank, err error) (levels.Rank, error) {
	if peer, ok := errors.AsType[*PeerError](err); ok && peer.world > 0 {
		return peer.world - 1, peer.Err
	}
	return by, err
}

// failRank ends what a rank is in on the ranks of this process, now and later.
func (w *World) failRank(by levels.Rank, err error) {
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.noteLost(by, err)
	})
	w.failWhere(by, err, func(c *Comm) bool { return c.isMember(by) })
	w.eachLocal(func(e *Endpoint) { e.voter.Nudge() })
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

// disownCall ends the communicators that came of a call on another one, because rank d.by
// failed in that call and is a member. Ranks of this process that make one of them later
// find it broken.
func (w *World) disownCall(comm CommID, d disowned) {
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if c := e.comms[comm]; c != nil {
			c.disowned = append(c.disowned, d)
		}
	})
	made := func(c *Comm) bool { return c.parent == origin{comm, d.seq, true} && c.isMember(d.by) }
	w.failWhere(d.first, d.err, func(c *Comm) bool { return made(c) && c.isMember(d.first) })
	w.failWhere(d.by, d.otherwise(), made)
	ids := map[CommID]bool{} // also of those that were broken before, by another one who disowns the call
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for id, c := range e.comms {
			if made(c) {
				ids[id] = true
				c.markAway(d.by) // it will never say goodbye there
				c.never = append(c.never, d.by)
			}
		}
	})
	for id := range ids {
		w.tellDisowner(id, d.by, d.err)
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

// mostAsked bounds the ranks that are asked what they run.
const mostAsked = 64

// findCalls returns what ranks of the world run or ran as call seq on a communicator. One of them has sent a message with a
// digest, 0 if it hasn't.
func (w *World) findCalls(ranks []levels.Rank, comm CommID, seq uint32, sender levels.Rank, digest uint32) map[levels.Rank]foundCall {
	all := map[levels.Rank]foundCall{}
	var far []levels.Rank
	for _, r := range ranks {
		if e := w.endpoints[r]; e == nil {
			far = append(far, r)
		} else if r == sender {
			all[r] = e.findCall(comm, seq, digest)
		} else {
			all[r] = e.findCall(comm, seq, 0)
		}
	}
	if len(far) > 0 {
		w.control.askCalls(far, comm, seq, sender, digest, all)
	}
	return all
}

// recallCalls is findCalls that asks no other process: of those only who has left is known.
func (w *World) recallCalls(ranks []levels.Rank, comm CommID, seq uint32, sender levels.Rank, digest uint32) map[levels.Rank]foundCall {
	all := map[levels.Rank]foundCall{}
	if w.control != nil {
		all[sender] = w.control.recallCall(sender, comm, seq, digest)
	}
	return all
}

// findCall returns what this rank runs or ran under a number. digest is what it has sent with it, 0 if that isn't known.
func (e *Endpoint) findCall(comm CommID, seq, digest uint32) foundCall {
	e.mu.Lock()
	defer e.mu.Unlock()
	if call := e.known.byDigest[digest]; digest != 0 && call != nil {
		return foundCall{cameTo, digest, call}
	}
	c := e.comms[comm]
	if c == nil || c.local == nil {
		return foundCall{}
	}
	p := c.remembered(seq)
	switch {
	case !c.hasEnded(seq):
		return foundCall{state: notCome}
	case p.call != nil && p.seq == seq:
		return foundCall{cameTo, p.digest, p.call}
	}
	return foundCall{}
}

// pastCalls returns what this rank tells when it leaves the communicator of all ranks. The lock is held.
func (c *Comm) pastCalls() *pastCalls {
	past, told, room := &pastCalls{}, map[uint32]bool{}, mostPastText
	if len(c.local) > mostAsked {
		room /= 8
	}
	tell := func(digest uint32, call *description) *description {
		size := len(call.Request) + len(call.Operation) + len(call.Plan) + len(call.Layout)
		if told[digest] || size > room {
			return nil
		}
		told[digest] = true
		room -= size
		return call
	}
	for seq := c.seq - min(c.seq, mostPast); seq != c.seq; seq++ {
		if p := c.remembered(seq); p.call != nil && p.seq == seq {
			past.Calls = append(past.Calls, pastCall{seq, p.digest, tell(p.digest, p.call)})
		}
	}
	for _, digest := range slices.Backward(c.e.known.order) {
		if call := tell(digest, c.e.known.byDigest[digest]); call != nil {
			past.Known = append(past.Known, pastCall{0, digest, call})
		}
	}
	return past
}

// finder is [World.findCalls], or a function that asks nobody.
type finder func(ranks []levels.Rank, comm CommID, seq uint32, sender levels.Rank, digest uint32) map[levels.Rank]foundCall

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
	var f *failure
	switch p := c.remembered(q.seq); {
	case c.broken != nil && c.broken != ErrClosed:
	case c.hasEnded(q.seq) && c.numberOf(q.from) >= 0:
		if p.seq == q.seq && p.digest != q.digest {
			f = &failure{comm: c, peer: q.from, seq: q.seq, mine: p.call, digest: p.digest, other: q.digest, theirs: q.call}
		}
	case c.broken == nil && !slices.Contains(c.early, earlyMessage{m, q.from, -1}):
		c.early = append(c.early, earlyMessage{m, q.from, -1})
	}
	e.mu.Unlock()
	if f != nil {
		e.world.runApart(func() {
			f.explainMismatch(e.world.findCalls)
			e.world.failComm(c, f.peer, f.err)
		})
	}
}

// runApart calls f where it may ask other processes: they answer to the goroutine that calls this.
func (w *World) runApart(f func()) {
	if w.control == nil || !w.control.runApart(f) {
		f()
	}
}

// explainMismatch makes the error of a mismatch, if it is one. It asks the peer what it runs, and the others, if they are
// not too many. The lock must not be held.
func (f *failure) explainMismatch(find finder) {
	if f.mine == nil {
		return
	}
	c, ask := f.comm, []levels.Rank{f.peer}
	if f.err == nil && len(c.ranks) <= mostAsked {
		ask = slices.DeleteFunc(slices.Clone(c.ranks), func(r levels.Rank) bool { return r == c.e.rank })
	}
	look := func() map[levels.Rank]foundCall {
		found := map[levels.Rank]foundCall{}
		for r, call := range find(ask, c.id, f.seq, f.peer, f.other) {
			found[c.numberOf(r)] = call
		}
		return found
	}
	found := look()
	for end := time.Now().Add(wire.Tick); f.isEven(found) && time.Now().Before(end); found = look() {
		time.Sleep(wire.Tick / 10) // who is about to come says which ranks are wrong
	}
	theirs := found[c.numberOf(f.peer)]
	if f.theirs != nil {
		theirs.call = f.theirs
	}
	if f.err != nil && (theirs.state != cameTo || theirs.digest == f.digest) {
		return
	}
	if theirs.call == nil {
		theirs.call = unknownCall
	}
	if f.other == 0 {
		f.other = theirs.digest
	}
	m := newMismatch(c.me, c.numberOf(f.peer), f.seq, f.mine, theirs.call)
	m.Comm = c.id
	m.tellOthers(c.Size(), f.digest, f.other, found)
	f.err, f.peer, f.later = m, c.e.rank, false
}

// isEven reports whether nobody can say yet which of two ranks is wrong: of the others as many
// run what the one runs as what the other does, and some have not come.
func (f *failure) isEven(found map[levels.Rank]foundCall) bool {
	theirs := f.other
	if theirs == 0 {
		theirs = found[f.comm.numberOf(f.peer)].digest
	}
	balance, absent := 0, 0
	for r, call := range found {
		switch {
		case f.comm.ranks[r] == f.peer:
		case call.state == notCome:
			absent++
		case call.state == cameTo && call.digest == f.digest:
			balance++
		case call.state == cameTo && call.digest == theirs:
			balance--
		}
	}
	return absent > 0 && balance == 0
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
		err = errPassed(context.Cause(ctx))
		c.e.mu.Unlock()
		c.e.world.failComm(c, c.e.rank, err)
		c.e.mu.Lock()
	}
	return err
}

// errPassed is why a call fails whose context's deadline has passed before it.
func errPassed(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("came to a call when its context's deadline had passed: %w", cause)
	}
	return cause
}

// failHereRank ends what one rank of this process and another rank are in: one of them has gone on
// without the other one.
func (w *World) failHereRank(e *Endpoint, other levels.Rank) {
	e.mu.Lock()
	e.noteLost(other, ErrExcluded)
	e.dead = append(e.dead, other)
	e.mu.Unlock()
	ids := e.markBrokenWhere(other, ErrExcluded, func(c *Comm) bool { return c.isMember(other) })
	e.mu.Lock()
	for _, c := range e.comms {
		c.markAway(other)
	}
	e.mu.Unlock()
	for _, id := range ids {
		e.endBroken(id)
	}
}

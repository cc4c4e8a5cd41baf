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

// failComm ends a communicator on all ranks, because of a failure on a rank of this process. The
// other processes are told first: once the communicator is broken here, a rank may close it and end
// the job, and nothing could be told any more.
func (w *World) failComm(c *Comm, by levels.Rank, err error) {
	f, way, must := c.decideBreak(by, err)
	if !must {
		return
	}
	defer close(way.settled)
	defer w.unretain(c.id)
	if w.control != nil {
		w.control.tellAbort(c, f.peer, f.err)
	}
	close(way.told)
	w.failHere(c.id, c.members(), f.peer, f.err)
}

// unretain ends one retain. The ranks of this process forget the communicator if all have left it.
func (w *World) unretain(id CommID) {
	w.keeping.Lock()
	w.retained[id]--
	if w.retained[id] == 0 {
		delete(w.retained, id)
	}
	w.keeping.Unlock()
	w.eachLocked(func(e *Endpoint) {
		if c := e.comms[id]; c != nil {
			c.forgetIfLeft()
		}
	})
}

// failHere ends a communicator on the ranks of this process, if they are among its members of the
// world, nil for all. First every rank is marked, so no one writes into a buffer of another any
// more; only then do runs return.
func (w *World) failHere(comm CommID, members rankSet, by levels.Rank, err error) {
	w.eachLocal(func(e *Endpoint) { e.markBroken(comm, members, by, err) })
	w.eachLocal(func(e *Endpoint) { e.endBroken(comm) })
}

// failLater ends the runs of a communicator from one on, because of a departed rank. Each process
// hears of the departure by itself; here all ranks are marked before one returns, as in failHere.
func (w *World) failLater(f failure) {
	c := f.comm
	c.e.mu.Lock()
	left := c.hasLeft // then others may have forgotten it
	if !left {
		w.retain(c.id)
	}
	c.e.mu.Unlock()
	if left {
		c.e.endBroken(c.id)
		return
	}
	defer w.unretain(c.id)
	members := c.members()
	w.eachLocal(func(e *Endpoint) { e.limitRuns(f, members) })
	w.eachLocal(func(e *Endpoint) { e.endBroken(c.id) })
}

// Fail ends a rank's communicators, later ones too, on all ranks because of a failure on it: a
// panic, for example. If it is a rank of this process, Close waits for no other process any more: they say no goodbye to it.
// If it began on another rank, of which by has heard, Close waits for [World.HurryClose]'s time.
func (w *World) Fail(by levels.Rank, err error) {
	if w.endpoints[by] != nil {
		w.HurryClose()
	}
	by, err = originOf(by, err)
	if e := w.endpoints[by]; e != nil {
		e.voter.Quit() // before the others count on it
		w.failed.Store(true)
	}
	if w.control != nil {
		w.control.tellFailed(by, err)
	}
	w.endRank(by)
	w.failRank(by, err)
}

// Abort is [World.Fail] by a rank of this process that ends the job with a reason: all ranks get an error that wraps
// [ErrAborted], which it returns, and the launcher hears of it.
func (w *World) Abort(by levels.Rank, reason error) error {
	err := fmt.Errorf("%w: %w", ErrAborted, reason)
	w.blame(by, err)
	w.Fail(by, err)
	return err
}

// endRank notes a rank's own word that it takes part in nothing any more.
func (w *World) endRank(by levels.Rank) {
	w.eachLocked(func(e *Endpoint) {
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

// failRank ends a rank's communicators on the ranks of this process, now and later.
func (w *World) failRank(by levels.Rank, err error) {
	w.eachLocked(func(e *Endpoint) {
		e.noteLost(by, err)
	})
	w.failWhere(by, err, func(c *Comm) bool { return c.isMember(by) })
	w.eachLocal(func(e *Endpoint) { e.voter.Nudge() })
}

// failWhere ends the communicators picked by pick on the ranks of this process.
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

// disownCall ends the communicators made in a call on another one, because rank d.by failed in this
// call and is a member. Ranks of this process making one of them later find it broken.
func (w *World) disownCall(comm CommID, d disowned) {
	w.eachLocked(func(e *Endpoint) {
		if c := e.comms[comm]; c != nil {
			c.disownedCalls = append(c.disownedCalls, d)
		}
	})
	made := func(c *Comm) bool { return c.parent == origin{comm, d.seq, true} && c.isMember(d.by) }
	w.failWhere(d.first, d.err, func(c *Comm) bool { return made(c) && c.isMember(d.first) })
	w.failWhere(d.by, d.indirectError(), made)
	ids := map[CommID]bool{} // also of those broken before, by another rank disowning the call
	w.eachLocked(func(e *Endpoint) {
		for id, c := range e.comms {
			if made(c) {
				ids[id] = true
				c.markAway(d.by) // it will never say goodbye there
				c.abstainers = append(c.abstainers, d.by)
			}
		}
	})
	for id := range ids {
		w.tellDisowner(id, d.by, d.err)
	}
}

// tellDisowner tells a rank the number of a communicator it has disowned. The rank then drops the
// early messages for it.
func (w *World) tellDisowner(id CommID, by levels.Rank, err error) {
	if e := w.endpoints[by]; e != nil {
		e.markBroken(id, nil, by, err)
	} else {
		w.control.tellDisowner(id, by, err)
	}
}

// mostAsked bounds the ranks asked about their calls.
const mostAsked = 64

// findCalls returns the calls of ranks of the world.
func (w *World) findCalls(ranks []levels.Rank, q callQuery) map[levels.Rank]foundCall {
	all := map[levels.Rank]foundCall{}
	var far []levels.Rank
	for _, r := range ranks {
		if e := w.endpoints[r]; e != nil {
			all[r] = e.findCall(q.comm, q.seq, q.digestOf(r))
		} else {
			far = append(far, r)
		}
	}
	if len(far) > 0 {
		w.control.askCalls(far, q, all)
	}
	return all
}

// recallCalls is findCalls without questions to other processes: it knows only the departed sender.
func (w *World) recallCalls(_ []levels.Rank, q callQuery) map[levels.Rank]foundCall {
	all := map[levels.Rank]foundCall{}
	if w.control != nil {
		all[q.sender] = w.control.recallCall(q.sender, q.comm, q.seq, q.digest)
	}
	return all
}

// findCall returns this rank's call with a number. digest is the one this rank has sent with it, 0
// if unknown.
func (e *Endpoint) findCall(comm CommID, seq, digest uint32) foundCall {
	e.mu.Lock()
	defer e.mu.Unlock()
	if call := e.known.byDigest[digest]; digest != 0 && call != nil {
		return foundCall{callPresent, digest, call}
	}
	c := e.comms[comm]
	if c == nil || c.local == nil {
		return foundCall{}
	}
	p := c.findRecord(seq)
	switch {
	case !c.hasEnded(seq):
		return foundCall{state: callAbsent}
	case p.call != nil && p.seq == seq:
		return foundCall{callPresent, p.digest, p.call}
	}
	return foundCall{}
}

// pastCalls returns this rank's last calls, told when it leaves the communicator of all ranks, with
// the known descriptions. size is that of the world. The lock is held.
func (o *callOrder) pastCalls(known *knownCalls, size int) *pastCalls {
	past, told, room := &pastCalls{}, map[uint32]bool{}, mostPastText
	if size > mostAsked {
		room /= 8
	}
	tell := func(digest uint32, call *description) *description {
		n := len(call.Request) + len(call.Operation) + len(call.Plan) + len(call.Layout)
		if told[digest] || n > room {
			return nil
		}
		told[digest] = true
		room -= n
		return call
	}
	for seq := o.seq - min(o.seq, mostPast); seq != o.seq; seq++ {
		if p := o.findRecord(seq); p.call != nil && p.seq == seq {
			past.Calls = append(past.Calls, pastCall{seq, p.digest, tell(p.digest, p.call)})
		}
	}
	for _, digest := range slices.Backward(known.order) {
		if call := tell(digest, known.byDigest[digest]); call != nil {
			past.Known = append(past.Known, pastCall{0, digest, call})
		}
	}
	return past
}

// callFinder is [World.findCalls] or [World.recallCalls].
type callFinder func(ranks []levels.Rank, q callQuery) map[levels.Rank]foundCall

// deliverInquiry takes a question to a rank. A mismatch found there ends the communicator.
func (w *World) deliverInquiry(q inquiry) {
	if e := w.endpoints[q.to]; e != nil {
		e.answerInquiry(q)
		return
	}
	w.control.inquire(q)
}

// answerInquiry compares a question with this rank's calls. One about a call not begun yet is kept
// until then, once. The lock must not be held.
func (e *Endpoint) answerInquiry(q inquiry) {
	e.mu.Lock()
	c := e.comms[q.comm]
	if c == nil || c.local == nil { // it is asked again
		e.mu.Unlock()
		return
	}
	m := wire.Message{Kind: wire.Probe, Comm: q.comm, Seq: q.seq, Digest: q.digest}
	var f *failure
	switch p := c.findRecord(q.seq); {
	case c.broken != nil && c.broken != ErrClosed:
	case c.hasEnded(q.seq) && c.numberOf(q.from) >= 0:
		if p.seq == q.seq && p.digest != q.digest {
			f = &failure{comm: c, peer: q.from, seq: q.seq, mine: p.call, digest: p.digest, other: q.digest, theirs: q.call}
		}
	case c.broken == nil && !slices.Contains(c.earlyMessages, earlyMessage{m, q.from, -1}):
		c.earlyMessages = append(c.earlyMessages, earlyMessage{m, q.from, -1})
	}
	e.mu.Unlock()
	if f != nil {
		e.world.runApart(func() {
			f.explainMismatch(e.world.findCalls)
			e.world.failComm(c, f.peer, f.err)
		})
	}
}

// runApart calls f on a goroutine allowed to ask other processes: the answers come to the goroutine
// of the caller.
func (w *World) runApart(f func()) {
	if w.control == nil || !w.control.runApart(f) {
		f()
	}
}

// explainMismatch makes the error of a mismatch, if it is one. It asks the peer about its call, and
// the other ranks, if they are not too many. The lock must not be held.
func (f *failure) explainMismatch(find callFinder) {
	if f.mine == nil {
		return
	}
	c, ask := f.comm, []levels.Rank{f.peer}
	if f.err == nil && len(c.ranks) <= mostAsked {
		ask = slices.DeleteFunc(slices.Clone(c.ranks), func(r levels.Rank) bool { return r == c.e.rank })
	}
	look := func() map[levels.Rank]foundCall {
		found := map[levels.Rank]foundCall{}
		for r, call := range find(ask, callQuery{c.id, f.seq, f.peer, f.other}) {
			found[c.numberOf(r)] = call
		}
		return found
	}
	found := look()
	for end := time.Now().Add(wire.Tick); f.isUndecided(found) && time.Now().Before(end); found = look() {
		time.Sleep(wire.Tick / 10) // a rank about to come decides which ranks are wrong
	}
	theirs := found[c.numberOf(f.peer)]
	if f.theirs != nil {
		theirs.call = f.theirs
	}
	if f.err != nil && (theirs.state != callPresent || theirs.digest == f.digest) {
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

// isUndecided reports whether nobody can say yet which of two calls most ranks run: those that have not
// come may decide otherwise.
func (f *failure) isUndecided(found map[levels.Rank]foundCall) bool {
	theirs := f.other
	if theirs == 0 {
		theirs = found[f.comm.numberOf(f.peer)].digest
	}
	balance, absent := 0, 0
	for r, call := range found {
		switch {
		case f.comm.ranks[r] == f.peer:
		case call.state == callAbsent:
			absent++
		case call.state == callPresent && call.digest == f.digest:
			balance++
		case call.state == callPresent && call.digest == theirs:
			balance--
		}
	}
	return absent > 0 && absent >= max(balance, -balance)
}

// admitCall returns the reason why a call can't begin, nil if it can. A context done already ends
// the communicator, as one done later does: the other ranks would wait in vain for this call. The
// lock is held, but not while the others are told.
func (c *Comm) admitCall(ctx context.Context) error {
	err := c.whyUnusable()
	if ctx == nil {
		return errNoContext
	}
	if err == nil && ctx.Err() != nil {
		if err = context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("came to a call when its context's deadline had passed: %w", err)
		}
		c.e.mu.Unlock()
		c.e.world.failComm(c, c.e.rank, err)
		c.e.mu.Lock()
	}
	return err
}

// failHereRank ends the communicators with one rank of this process and another rank: one of the
// two has gone on without the other.
func (w *World) failHereRank(e *Endpoint, other levels.Rank, err error) {
	e.mu.Lock()
	e.noteLost(other, err)
	e.dead = append(e.dead, other)
	e.mu.Unlock()
	ids := e.markBrokenWhere(other, err, func(c *Comm) bool { return c.isMember(other) })
	e.mu.Lock()
	for _, c := range e.comms {
		c.markAway(other)
	}
	e.mu.Unlock()
	for _, id := range ids {
		e.endBroken(id)
	}
}

package executor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Draw returns a number for a communicator that this rank leads: one that neither this
// rank nor another one has drawn. Any goroutine may call it.
func (e *Endpoint) Draw() (CommID, error) {
	n := e.drawn.Add(1)
	if n >= 1<<wire.DrawnBits {
		return 0, fmt.Errorf("rank %d has drawn %d numbers of communicators; there are no more", e.rank, n-1)
	}
	return wire.DrawnBy(e.rank, n), nil
}

// Make makes a further communicator of this rank with some ranks of the world, of
// which this rank is one. All of them must give the same number, which one of them has
// drawn ([Endpoint.Draw]), and the same ranks.
func (e *Endpoint) Make(id CommID, ranks []levels.Rank) (*Comm, error) {
	c, _, err := e.makeComm(id, ranks, origin{}, nil)
	return c, err
}

// Derive is [Endpoint.Make] of a communicator of some ranks of c, as they have agreed in
// call seq on c. If one of them has disowned that call, see [Comm.Disown], the
// communicator is broken from the start.
func (c *Comm) Derive(id CommID, ranks []levels.Rank, seq uint32) (*Comm, error) {
	d, without, err := c.e.makeComm(id, ranks, origin{comm: c.id, seq: seq, known: true}, c)
	for _, f := range without {
		c.e.world.tellDisowner(id, f.by, f.err)
	}
	return d, err
}

// makeComm also returns who has disowned the call that the communicator is from.
func (e *Endpoint) makeComm(id CommID, ranks []levels.Rank, from origin, parent *Comm) (c *Comm, without []disowned, err error) {
	e.enter()
	defer e.mu.Unlock()
	if !slices.Contains(ranks, e.rank) {
		return nil, nil, fmt.Errorf("communicator %v: rank %d of the world is not among its ranks %v", id, e.rank, ranks)
	}
	if c = e.ensureComm(id); c.local != nil {
		return nil, nil, fmt.Errorf("communicator %v: rank %d has one of that number", id, e.rank)
	}
	c.parent = from
	c.defineMembers(ranks)
	if parent != nil {
		for _, d := range parent.disowned {
			if d.seq == from.seq {
				c.breakUp(d.first, d.err)
				c.breakUp(d.by, d.otherwise()) // if the first is no member
				c.markAway(d.by)
				c.never = append(c.never, d.by)
				if c.isMember(d.by) {
					without = append(without, d)
				}
			}
		}
	}
	if c.broken != nil && !e.stopped {
		c.dropEarly()
	}
	return c, without, nil
}

// defineMembers sets who is in the communicator; e.rank must be. What was heard of them
// before counts from now on.
func (c *Comm) defineMembers(ranks []levels.Rank) {
	c.ranks = slices.Clone(ranks)
	c.local = make([]int32, len(c.e.peers))
	for i := range c.local {
		c.local[i] = -1
	}
	for i, r := range ranks {
		c.local[r] = int32(i)
	}
	c.me = levels.Rank(c.local[c.e.rank])
	c.past = make([]record, pastRuns)
	c.away = newRankSet(len(ranks))
	for _, f := range slices.Concat(c.foretold, c.e.lost) {
		if f.later {
			c.limitRuns(f.peer, f.seq, f.err)
		} else {
			c.breakUp(f.peer, f.err)
		}
	}
	c.foretold = nil
	if c.e.stopped || c.id != 0 && c.e.ensureComm(0).left {
		c.broken = ErrClosed
	}
	early := c.gone
	c.gone = nil
	for _, d := range early {
		c.noteDeparture(d)
	}
	if c.id != 0 {
		for _, d := range c.e.ensureComm(0).gone {
			c.noteDeparture(departure{rank: d.rank, fromAll: true, since: time.Now()})
		}
	}
	for _, r := range c.e.dead {
		c.markAway(r)
	}
}

// Revoke breaks the communicator on all ranks. Calls that wait, and calls made later, return an
// error: here one that wraps reason, on the others a [PeerError] with reason's text. Nothing
// happens on one that is broken or closed. Any goroutine may call it.
func (c *Comm) Revoke(reason error) { c.e.world.failComm(c, c.e.rank, reason) }

// Close leaves the communicator: calls on it return [ErrClosed]. Runs that this
// rank took part in end well on the other ranks, and transfers between them; a
// further run fails on each rank that starts one. It must not be called while a
// run is on its way here; then it is a failure on all ranks. Once all ranks have
// closed it, nothing is left of it.
func (c *Comm) Close() error { return c.leave(true) }

// leave closes the communicator. The others are told if tell is set, and in any case if
// it isn't broken.
func (c *Comm) leave(tell bool) error {
	e := c.e
	e.enter()
	if c.left {
		e.mu.Unlock()
		return nil
	}
	if n := c.news; n != nil { // the goodbye comes after the reason: who has heard all goodbyes forgets
		e.mu.Unlock()
		<-n.told
		e.mu.Lock()
		if c.left { // another goroutine has closed it meanwhile
			e.mu.Unlock()
			return nil
		}
		c.breakUp(c.telling.peer, c.telling.err)
	}
	var err error
	if c.broken == nil && c.isBusy() {
		err = fmt.Errorf("closed during a call: %w", ErrClosed)
		e.mu.Unlock()
		e.world.failComm(c, e.rank, err)
		e.mu.Lock()
		if c.left { // another goroutine has closed it meanwhile
			e.mu.Unlock()
			return err
		}
	}
	c.left = true
	m, onward, owed := e.voter.Withdraw(c.topic(0)) // those who go on without this rank may count it out
	say := (tell || c.broken == nil) && !e.stopped
	// The control plane may not have told yet what this rank has broken of the others.
	broken := c.cause.err != nil || c.id == 0 && e.world.control != nil && e.comms.hasBroken()
	var told []levels.Rank
	others := false
	if say {
		told, others = c.sayBye(broken)
	}
	var past *pastCalls
	if say && c.id == 0 && c.seq > 0 && e.world.control != nil {
		past = c.pastCalls()
	}
	if c.broken == nil {
		c.broken = ErrClosed
		c.noteHeldDepartures()
	}
	if !e.stopped {
		c.dropEarly()
	}
	c.forgetIfLeft()
	e.handOver() // what found no room
	e.mu.Unlock()
	if past != nil {
		e.world.control.tellPast(past)
	}
	if say && e.world.control != nil && (others || broken) {
		e.world.control.tellBye(c, told, broken, onward)
	}
	if owed && c.id != 0 { // it leaves those with whom it should go on
		if next, failed := e.Make(m.Next()); failed == nil {
			err = errors.Join(err, next.leave(true))
		}
	}
	return err
}

// sayBye tells the other ranks over the links, behind all that was sent before. It
// returns whom it told, and whether there are others, to whom there is no link. Of a
// broken communicator all are told by the control tree too, behind the failure.
func (c *Comm) sayBye(broken bool) (told []levels.Rank, others bool) {
	e := c.e
	for _, r := range c.ranks {
		switch {
		case r == e.rank:
		case e.isOpen(r):
			m := wire.Message{Kind: wire.Bye, Comm: c.id, Seq: c.seq}
			m.Broken = broken
			e.transmit(r, &m, nil)
			told = append(told, r)
		default:
			others = true
		}
	}
	e.link.Flush(e.ears())
	return told, others
}

// isOpen reports whether a message to a rank needs no connection that isn't there.
func (e *Endpoint) isOpen(to levels.Rank) bool {
	d, ok := e.link.(wire.Dialler)
	return !ok || d.IsOpen(to)
}

// Disown tells the members that this rank has failed in call seq, in which others may
// have made communicators with it. It has none of these: on the others they break.
func (c *Comm) Disown(seq uint32, err error) {
	w := c.e.world
	first, err := originOf(c.e.rank, err)
	if w.control != nil {
		w.control.tellDisowned(c, seq, first, err)
	}
	w.disownCall(c.id, disowned{seq, c.e.rank, first, err})
}

// Err returns why no call can begin on the communicator; nil: one can.
func (c *Comm) Err() error {
	c.e.enter()
	defer c.e.mu.Unlock()
	return c.whyUnusable()
}

// Counters returns a snapshot.
func (c *Comm) Counters() Counters {
	c.e.enter()
	defer c.e.mu.Unlock()
	return c.counters
}

// Comm returns the rank's end of a communicator, nil if it has none of that number.
func (e *Endpoint) Comm(id CommID) *Comm {
	e.enter()
	defer e.mu.Unlock()
	if c := e.comms[id]; c != nil && c.local != nil {
		return c
	}
	return nil
}

// commIDs returns the numbers of the communicators for which pick is true, ascending.
func (e *Endpoint) commIDs(pick func(c *Comm) bool) []CommID {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ids []CommID
	for id, c := range e.comms {
		if pick(c) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Close leaves all communicators, see [Comm.Close], that of all ranks last: its goodbye
// counts for all others.
func (e *Endpoint) Close() error {
	e.enter()
	e.mu.Unlock()
	var errs []error
	ids := e.commIDs(func(c *Comm) bool { return c.local != nil })
	slices.Reverse(ids)
	for _, id := range ids {
		if c := e.Comm(id); c != nil {
			errs = append(errs, c.leave(id == 0))
		}
	}
	return errors.Join(errs...)
}

// Alloc takes n zero bytes that the ranks of the node can read in place, until
// free is called, once. They stay mapped after the world is closed.
func (e *Endpoint) Alloc(n int64) (b []byte, free func(), err error) {
	e.enter()
	defer e.mu.Unlock()
	b, free, err = e.memory.Lend(n)
	clear(b)
	return b, free, err
}

// hasBroken reports whether one of them is broken. The engine's lock is held.
func (t commTable) hasBroken() bool {
	for _, c := range t {
		if c.cause.err != nil {
			return true
		}
	}
	return false
}

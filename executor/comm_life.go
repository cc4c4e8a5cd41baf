package executor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor/internal/ballot"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// Draw returns an unused number for a communicator led by this rank: no rank draws it again. Any
// goroutine may call it.
func (e *Endpoint) Draw() (CommID, error) {
	n := e.drawn.Add(1)
	if n >= 1<<wire.DrawnBits {
		return 0, fmt.Errorf("rank %d has drawn %d numbers of communicators; there are no more", e.rank, n-1)
	}
	return wire.DrawnBy(e.rank, n), nil
}

// Make makes a further communicator of this rank and other ranks of the world. All of them give the
// same ranks and the same number, drawn by one of them ([Endpoint.Draw]).
func (e *Endpoint) Make(id CommID, ranks []levels.Rank) (*Comm, error) {
	c, _, err := e.makeComm(id, ranks, origin{}, nil)
	return c, err
}

// Derive is [Endpoint.Make] of a communicator of some ranks of c, as they have agreed in call seq
// on c. If one of them has disowned that call, see [Comm.Disown], the communicator is broken from
// the start.
func (c *Comm) Derive(id CommID, ranks []levels.Rank, seq uint32) (*Comm, error) {
	d, without, err := c.e.makeComm(id, ranks, origin{comm: c.id, seq: seq, known: true}, c)
	for _, f := range without {
		c.e.world.tellDisowner(id, f.by, f.err)
	}
	return d, err
}

// makeComm makes a communicator. It also returns the members that have disowned the call it is
// from.
func (e *Endpoint) makeComm(id CommID, ranks []levels.Rank, from origin, parent *Comm) (c *Comm, without []disowned, err error) {
	e.mu.Lock()
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
		for _, d := range parent.disownedCalls {
			if d.seq == from.seq && c.isMember(d.by) {
				c.breakUp(d.first, d.err)
				c.breakUp(d.by, d.indirectError()) // if the first is no member
				c.markAway(d.by)
				c.abstainers = append(c.abstainers, d.by)
				without = append(without, d)
			}
		}
	}
	if c.broken != nil && !e.stopped { // by the disowned
		c.dropEarly()
	}
	return c, without, nil
}

// defineMembers sets the members of the communicator; e.rank must be one. Earlier news about them
// counts from now on.
func (c *Comm) defineMembers(ranks []levels.Rank) {
	c.ranks = slices.Clone(ranks)
	c.local = make([]int32, c.e.peers.size)
	for i := range c.local {
		c.local[i] = -1
	}
	for i, r := range ranks {
		c.local[r] = int32(i)
	}
	c.me = levels.Rank(c.local[c.e.rank])
	c.past = make([]record, pastRuns)
	c.departed = newRankSet(len(ranks))
	for _, f := range slices.Concat(c.earlyFailures, c.e.lost) {
		if f.later {
			c.limitRuns(f.peer, f.seq, f.err)
		} else {
			c.breakUp(f.peer, f.err)
		}
	}
	c.earlyFailures = nil
	if c.e.stopped || c.id != 0 && c.e.ensureComm(0).hasLeft {
		c.broken = ErrClosed
	}
	early := c.departures
	c.departures = nil
	for _, d := range early {
		c.noteDeparture(d)
	}
	if c.id != 0 {
		for _, d := range c.e.ensureComm(0).departures {
			c.noteDeparture(c.departureFromAll(d.rank))
		}
	}
	for _, r := range c.e.dead {
		c.markAway(r)
	}
	if c.broken != nil && !c.e.stopped {
		c.dropEarly()
	}
}

// Revoke breaks the communicator on all ranks. Waiting and later calls return an error: here one
// that wraps reason, on the others a [PeerError] with reason's text. On a broken or closed
// communicator it does nothing. Any goroutine may call it.
func (c *Comm) Revoke(reason error) { c.e.world.failComm(c, c.e.rank, reason) }

// Close leaves the communicator: calls on it return [ErrClosed]. On the other ranks the runs with
// this rank's part end well, and so do transfers between them; a further run fails on each rank
// that starts one. Calling it while a run is on its way here is a failure on all ranks. Once all
// ranks have closed it, nothing is left of it.
func (c *Comm) Close() error { return c.leave(true) }

// leave closes the communicator. The others are told if tell is set, and always if it isn't broken.
func (c *Comm) leave(tell bool) error {
	e := c.e
	e.mu.Lock()
	err := c.endBeforeLeaving()
	if c.hasLeft { // perhaps by another goroutine, meanwhile
		e.mu.Unlock()
		return err
	}
	c.hasLeft = true
	m, onward, owed := e.voter.Withdraw(ballot.Topic{Comm: c.id}) // the remaining ranks may count this one out
	say := (tell || c.broken == nil) && !e.stopped
	// The control plane may not have told the others yet about a break by this rank.
	broken := c.cause.err != nil || c.id == 0 && e.world.control != nil && e.comms.hasBroken()
	var told []levels.Rank
	others := false
	if say {
		told, others = c.sayBye(broken, onward)
	}
	var past *pastCalls
	if say && c.id == 0 && c.seq > 0 && e.world.control != nil {
		past = c.pastCalls(&e.known, len(c.local))
	}
	if c.broken == nil {
		c.broken = ErrClosed
		c.noteHeldDepartures()
	}
	if !e.stopped {
		c.dropEarly()
	}
	if c.hasLeftHere() {
		c.departures = nil
	}
	c.forgetIfLeft()
	e.handOver() // for messages without room in a link
	e.mu.Unlock()
	if past != nil {
		e.world.control.broadcast(pastControl, note{Past: past})
	}
	if say && e.world.control != nil && (others || broken) {
		e.world.control.tellBye(c, told, broken, onward)
	}
	if owed && c.id != 0 { // this rank leaves its agreed successors, too
		id, ranks := m.Next()
		next, failed := e.Comm(id), error(nil)
		if next == nil { // the decision came, and its effect not yet
			next, failed = e.Make(id, ranks)
		}
		if failed == nil {
			err = errors.Join(err, next.leave(true))
		}
	}
	return err
}

// endBeforeLeaving carries out a break on its way: the goodbye comes after the reason, because a rank
// with all goodbyes forgets the communicator. Leaving during a call is a failure, and the error. The
// lock is held, but not all the time.
func (c *Comm) endBeforeLeaving() (err error) {
	e := c.e
	if n := c.announcement; n != nil && !c.hasLeft {
		e.mu.Unlock()
		<-n.told
		e.mu.Lock()
		if !c.hasLeft {
			c.breakUp(c.pendingCause.peer, c.pendingCause.err)
		}
	}
	if c.broken == nil && !c.hasLeft && c.isBusy() {
		err = closedError("closed during %s", c.describeOpen())
		e.mu.Unlock()
		e.world.failComm(c, e.rank, err)
		e.mu.Lock()
	}
	return err
}

// sayBye tells the other ranks over the links, behind all earlier messages. It returns the ranks it
// has told, and whether there are others without a link. On a broken communicator the control tree
// tells all of them too, behind the failure.
func (c *Comm) sayBye(broken, onward bool) (told []levels.Rank, others bool) {
	e := c.e
	m := wire.Message{Kind: wire.Bye, Comm: c.id, Seq: c.seq, Broken: broken, Onward: onward}
	if all, ok := e.link.(wire.Broadcaster); ok && c.id == 0 && all.PostAll(&m) {
		return nil, false
	}
	for _, r := range c.ranks {
		switch {
		case r == e.rank:
		case e.isOpen(r):
			e.transmit(r, &m, nil)
			told = append(told, r)
		default:
			others = true
		}
	}
	e.link.Flush(e.sink())
	return told, others
}

// isOpen reports whether a message to a rank needs no new connection.
func (t *traffic) isOpen(to levels.Rank) bool {
	d, ok := t.link.(wire.Dialler)
	return !ok || d.IsOpen(to)
}

// Disown tells the members about this rank's failure in call seq. Communicators that others may
// have made in it, with this rank, break.
func (c *Comm) Disown(seq uint32, err error) {
	w := c.e.world
	first, err := originOf(c.e.rank, err)
	if w.control != nil {
		w.control.tellDisowned(c, seq, first, err)
	}
	w.disownCall(c.id, disowned{seq, c.e.rank, first, err})
}

// Err returns the reason why no call can begin on the communicator; nil: one can.
func (c *Comm) Err() error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.whyUnusable()
}

// Counters returns a snapshot.
func (c *Comm) Counters() Counters {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.counters
}

// Comm returns the rank's end of a communicator, nil if it has none with this number.
func (e *Endpoint) Comm(id CommID) *Comm {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.comms[id]; c != nil && c.local != nil {
		return c
	}
	return nil
}

// listIDs returns the numbers of the communicators picked by pick, ascending.
func (t commTable) listIDs(pick func(c *Comm) bool) []CommID {
	var ids []CommID
	for id, c := range t {
		if pick(c) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Close leaves all communicators, see [Comm.Close]. That of all ranks is last: its goodbye counts
// for all others.
func (e *Endpoint) Close() error {
	e.mu.Lock()
	ids := e.comms.listIDs(func(c *Comm) bool { return c.local != nil })
	e.mu.Unlock()
	var errs []error
	slices.Reverse(ids)
	for _, id := range ids {
		if c := e.Comm(id); c != nil {
			errs = append(errs, c.leave(id == 0))
		}
	}
	return errors.Join(errs...)
}

// Alloc takes n zero bytes, readable in place by the ranks of the node until free is called, once.
// They stay mapped after the world is closed.
func (e *Endpoint) Alloc(n int64) (b []byte, free func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b, free, err = e.loans.insteadOfSpare(e.memory.Lend, n)
	clear(b)
	return b, free, err
}

// hasBroken reports whether one of the communicators is broken. The engine's lock is held.
func (t commTable) hasBroken() bool {
	for _, c := range t {
		if c.cause.err != nil {
			return true
		}
	}
	return false
}

package executor

import (
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// Comm is one rank's end of a communicator: the order of its runs, and what has
// arrived for runs that haven't begun. Runs on one communicator are started in
// the same order on all its ranks.
type Comm struct {
	e        *Endpoint
	id       CommID
	ranks    []levels.Rank // of the world, by rank of the communicator
	local    []int32       // rank of the communicator, by rank of the world; -1
	me       levels.Rank   // of the communicator
	parent   origin        // the call that made it
	seq      uint32        // runs started
	early    []earlyMessage
	past     [64]record // the last runs, by seq
	broken   error
	left     bool      // this rank has closed it
	foretold []failure // of a communicator that this rank hasn't made yet
	disowned []disowned
	gone     []departure
	away     rankSet // ranks of the communicator that have left, or died
	limit    *limit  // nil: no call has failed because of those
	counters Counters
	starting bool // a run, in a function that may let go of the lock
	mail
}

// Counters count what one rank has done on a communicator.
type Counters struct {
	Runs     int64 // started
	Straight int64 // of them, ended without the engine: all their small messages came in time
	Eager    int64 // messages sent without credit
	Direct   int64 // and against credit
	Bytes    int64 // of both
	Copied   int64 // bytes by copy steps
	Reduced  int64 // bytes by reduce steps
	Notifies int64
}

// Counters returns a snapshot.
func (c *Comm) Counters() Counters {
	c.e.enter()
	defer c.e.mu.Unlock()
	return c.counters
}

// earlyMessage came before its run, or before its pass.
type earlyMessage struct {
	message
	from  levels.Rank
	block int32
}

// record is what a run was, for those who come late to disagree.
type record struct {
	seq    uint32
	digest uint32
	call   *description // nil: there was none
}

// define tells who is in the communicator; e.rank must be.
func (c *Comm) define(ranks []levels.Rank) {
	c.ranks = slices.Clone(ranks)
	c.local = make([]int32, len(c.e.peers))
	for i := range c.local {
		c.local[i] = -1
	}
	for i, r := range ranks {
		c.local[r] = int32(i)
	}
	c.me = levels.Rank(c.local[c.e.rank])
	c.away = newRankSet(len(ranks))
	for _, f := range slices.Concat(c.foretold, c.e.lost) {
		c.breakUp(f.peer, f.err)
	}
	c.foretold = nil
	if c.e.stopped {
		c.broken = ErrClosed
	}
	early := c.gone
	c.gone = nil
	for _, d := range early {
		c.departed(d)
	}
	if c.id != 0 {
		for _, d := range c.e.comm(0).gone {
			c.departed(departure{rank: d.rank, fromAll: true})
		}
	}
	for _, r := range c.e.dead {
		c.miss(r)
	}
}

// Make makes a further communicator of this rank with some ranks of the world, of
// which this rank is one. All of them must give the same number, which one of them has
// drawn ([Endpoint.Draw]), and the same ranks.
func (e *Endpoint) Make(id CommID, ranks []levels.Rank) (*Comm, error) {
	return e.make(id, ranks, origin{}, nil)
}

// Derive is [Endpoint.Make] of a communicator of some ranks of c, as they have agreed in
// call seq on c. If one of them has disowned that call, see [Comm.Disown], the
// communicator is broken from the start.
func (c *Comm) Derive(id CommID, ranks []levels.Rank, seq uint32) (*Comm, error) {
	return c.e.make(id, ranks, origin{comm: c.id, seq: seq, known: true}, c)
}

func (e *Endpoint) make(id CommID, ranks []levels.Rank, from origin, parent *Comm) (*Comm, error) {
	e.enter()
	defer e.mu.Unlock()
	if !slices.Contains(ranks, e.rank) {
		return nil, fmt.Errorf("communicator %v: rank %d of the world is not among its ranks %v", id, e.rank, ranks)
	}
	c := e.comm(id)
	if c.local != nil {
		return nil, fmt.Errorf("communicator %v: rank %d has one of that number", id, e.rank)
	}
	c.parent = from
	c.define(ranks)
	if parent != nil {
		for _, d := range parent.disowned {
			if d.seq == from.seq {
				c.breakUp(d.by, d.err)
			}
		}
	}
	return c, nil
}

// ID is the communicator's number.
func (c *Comm) ID() CommID { return c.id }

// Ranks are the members, by rank of the communicator, as ranks of the world.
func (c *Comm) Ranks() []levels.Rank { return slices.Clone(c.ranks) }

// Endpoint is the engine of this rank.
func (c *Comm) Endpoint() *Endpoint { return c.e }

// number is a rank of the world as the communicator counts it, -1 if it is none
// of its ranks.
func (c *Comm) number(r levels.Rank) levels.Rank {
	if int(r) >= len(c.local) {
		return -1
	}
	return levels.Rank(c.local[r])
}

// Rank is this rank's number in the communicator.
func (c *Comm) Rank() levels.Rank { return c.me }

// Size is the number of ranks.
func (c *Comm) Size() int { return len(c.ranks) }

// find is the active run with a sequence number, nil if none.
func (c *Comm) find(seq uint32) *Run {
	for _, r := range c.e.runs {
		if r.comm == c && r.seq == seq {
			return r
		}
	}
	return nil
}

// deliver takes a message for this communicator.
func (c *Comm) deliver(from levels.Rank, m *message, payload []byte) {
	if m.kind == byeKind {
		c.e.hearBye(c, departure{rank: from, seq: m.seq})
		return
	}
	if c.broken != nil || len(c.foretold) > 0 {
		c.e.waste(from, m.kind, len(payload))
		return
	}
	switch {
	case m.kind >= taggedKind:
		c.deliverTransfer(from, m, payload)
		return
	case c.late(m.seq):
		c.e.waste(from, m.kind, len(payload))
		return
	}
	r := c.find(m.seq)
	c.hasCome(from, r, m)
	switch {
	case r != nil && r.digest != m.digest, r == nil && c.differed(m):
		c.mismatch(from, m.seq)
		c.e.waste(from, m.kind, len(payload))
	case r != nil && m.kind == probeKind, r == nil && c.over(m.seq):
	case r != nil && int32(m.pass-r.pass) < 0 && m.kind == creditKind: // late, see Run.resume
	case r != nil && int32(m.pass-r.pass) < 0:
		c.blame(from, fmt.Errorf("%w: %v message for pass %d of call %d, which is in pass %d", ErrProtocol, m.kind, m.pass, m.seq, r.pass))
	case r != nil && r.pass == m.pass:
		r.deliver(from, m, payload, -1)
	default:
		c.early = append(c.early, earlyMessage{*m, from, c.e.store.keep(payload)})
	}
}

// differed tells whether m is for another request than the one that has ended
// here under its number, as far as that is still known.
func (c *Comm) differed(m *message) bool {
	p := &c.past[m.seq%64]
	return c.over(m.seq) && p.seq == m.seq && p.digest != m.digest
}

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
	var err error
	if c.broken == nil && c.busy() {
		err = fmt.Errorf("closed during a call: %w", ErrClosed)
		e.mu.Unlock()
		e.world.fail(c, e.rank, err)
		e.mu.Lock()
	}
	var told []levels.Rank
	others := false
	if (tell || c.broken == nil) && !e.stopped {
		told, others = c.sayBye()
	}
	c.broken, c.left = ErrClosed, true
	c.dropEarly()
	c.retire()
	e.handOver() // what found no room
	e.mu.Unlock()
	if others {
		e.world.control.bye(c, told)
	}
	return err
}

// busy tells whether a run or a transfer is on its way.
func (c *Comm) busy() bool {
	return c.mail.open() || c.e.puts.some(c) ||
		slices.ContainsFunc(c.e.runs, func(r *Run) bool { return r.comm == c })
}

// retire forgets a communicator that this rank and all others have left: a rank that
// has said goodbye sends nothing more on it.
func (c *Comm) retire() {
	if c.left && c.id != 0 && c.away.count()+1 == len(c.ranks) {
		delete(c.e.comms, c.id)
	}
}

// dropEarly lets go of the messages that nobody will take any more.
func (c *Comm) dropEarly() {
	for i := range c.early {
		c.drop(&c.early[i])
	}
	c.early = nil
	for m := range c.came.all() {
		c.drop(m)
	}
	c.came.clear()
}

// drop lets go of a message that was kept.
func (c *Comm) drop(m *earlyMessage) {
	c.e.waste(m.from, m.kind, len(c.e.store.get(m.block)))
	c.e.store.drop(m.block)
}

// member tells whether a rank of the world is, or was, in the communicator.
func (c *Comm) member(rank levels.Rank) bool { return c.local != nil && c.local[rank] >= 0 }

// includes tells whether a rank of the world is in the communicator and has not
// left it.
func (c *Comm) includes(rank levels.Rank) bool {
	return c.member(rank) && !c.away.has(c.local[rank])
}

// members are its ranks, of the world; nil for all.
func (c *Comm) members() rankSet {
	if c.id == 0 {
		return nil
	}
	set := newRankSet(len(c.local))
	for _, r := range c.ranks {
		set.set(int32(r))
	}
	return set
}

// failed tells whether the communicator is broken or closed here.
func (c *Comm) failed() bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.broken != nil
}

// Disown tells the members that this rank has failed in call seq, in which others may
// have made communicators with it. It has none of these: on the others they break.
func (c *Comm) Disown(seq uint32, err error) {
	w := c.e.world
	if w.control != nil {
		w.control.disown(c, seq, err)
	}
	w.disown(c.id, seq, c.e.rank, err)
}

// sayBye tells the other ranks: over the links, behind all that was sent before,
// and those to which there is none by the control tree. It returns whom it told
// over a link, if others are left.
func (c *Comm) sayBye() (told []levels.Rank, others bool) {
	e := c.e
	for _, r := range c.ranks {
		switch {
		case r == e.rank:
		case e.transport.open(r):
			e.out = message{kind: byeKind, comm: c.id, seq: c.seq}
			e.post(r, nil)
			told = append(told, r)
		default:
			others = true
		}
	}
	e.transport.flush(e)
	return told, others
}

// over tells whether the run with that number has ended here.
func (c *Comm) over(seq uint32) bool { return int32(seq-c.seq) < 0 }

// catchUp hands the run's pass what came before it.
func (c *Comm) catchUp(r *Run) {
	kept := c.early[:0]
	for _, m := range c.early {
		if m.seq == r.seq {
			r.came.set(c.local[m.from])
		}
		switch {
		case m.seq != r.seq:
			kept = append(kept, m)
		case m.digest != r.digest:
			c.mismatch(m.from, m.seq)
			kept = append(kept, m) // for dropEarly
		case m.kind == probeKind:
		case m.pass != r.pass:
			kept = append(kept, m)
		default:
			r.deliver(m.from, &m.message, c.e.store.get(m.block), m.block)
		}
	}
	clear(c.early[len(kept):])
	c.early = kept
}

// disagreed looks for a message for the run that came before it from a rank that
// calls something else. Messages meet the digest of a run with steps when they are
// delivered; this is for one that ends without any.
func (c *Comm) disagreed(r *Run) bool {
	i := slices.IndexFunc(c.early, func(m earlyMessage) bool {
		return m.seq == r.seq && m.digest != r.digest
	})
	if i < 0 {
		return false
	}
	c.mismatch(c.early[i].from, r.seq)
	c.drop(&c.early[i])
	c.early = slices.Delete(c.early, i, i+1)
	return true
}

// blame notes that a rank of the world has failed. The driver carries it out
// without the engine's lock, see [Endpoint.carryOut].
func (c *Comm) blame(rank levels.Rank, err error) {
	c.e.failing = append(c.e.failing, failure{comm: c, peer: rank, err: err})
}

// mismatch notes that two ranks run different requests under one number.
func (c *Comm) mismatch(peer levels.Rank, seq uint32) {
	if c.broken == nil {
		c.e.failing = append(c.e.failing, failure{comm: c, peer: peer, seq: seq})
	}
}

// mismatchError asks the peer what it runs. The lock must not be held.
func (c *Comm) mismatchError(peer levels.Rank, seq uint32) error {
	mine, theirs := c.e.recorded(c.id, seq), c.e.world.recorded(peer, c.id, seq)
	return newMismatch(c.me, c.number(peer), seq, mine, theirs)
}

// recorded is what this rank runs or ran under a number.
func (e *Endpoint) recorded(comm CommID, seq uint32) *description {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.comms[comm]; c != nil && c.past[seq%64].call != nil {
		return c.past[seq%64].call
	}
	return unknownCall
}

// mark breaks the communicator here; nothing is written into a peer's memory
// from then on. members are those of the world who are in it, nil for all.
func (e *Endpoint) mark(comm CommID, members rankSet, by levels.Rank, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch c := e.comms[comm]; {
	case members != nil && !members.has(int32(e.rank)):
	case c == nil || c.local == nil:
		c = e.comm(comm)
		c.foretold = append(c.foretold, failure{peer: by, err: err})
		c.dropEarly()
	default:
		c.breakUp(by, err)
	}
}

// breakUp breaks the communicator because of what happened on a rank of the world.
func (c *Comm) breakUp(by levels.Rank, err error) {
	at := c.number(by)
	if c.broken != nil || at < 0 {
		return
	}
	c.broken = err
	c.e.transport.leave(c.id)
	if err == ErrClosed {
		return
	}
	if by != c.e.rank {
		c.broken = c.failure(by, err)
	}
	c.e.flight.Break(uint64(c.id), int32(by), c.broken)
	if log := c.e.world.config.Log; log != nil {
		log.Error("communicator broken", "rank", c.me, "comm", c.id, "err", c.broken)
	}
}

// settle ends the runs of a broken communicator, once all ranks are marked.
func (e *Endpoint) settle(comm CommID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.comms[comm]
	if c == nil || c.local == nil {
		return
	}
	if c.broken == nil {
		c.endLate()
		return
	}
	e.puts.forget(scope{comm: c.id})
	e.transport.forget(scope{comm: c.id}, e)
	for i := len(e.runs) - 1; i >= 0; i-- {
		if r := e.runs[i]; r.comm == c {
			r.finish(c.broken)
		}
	}
	c.dropEarly()
	c.endTransfers(c.broken)
	e.transport.wake()
}

// admit is why a call can't begin, nil if it can. A context that is done already
// ends the communicator like one that is done later: the other ranks would wait
// in vain for this call. The lock is held, but not while that is told.
func (c *Comm) admit(ctx context.Context) error {
	err := c.usable()
	if ctx == nil {
		return errNoContext
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
		c.e.mu.Unlock()
		c.e.world.fail(c, c.e.rank, err)
		c.e.mu.Lock()
	}
	return err
}

// usable is why the communicator can't be used, nil if it can.
func (c *Comm) usable() error {
	switch {
	case c.broken == ErrClosed:
		return ErrClosed
	case c.broken != nil:
		return fmt.Errorf("%w: %w", ErrBroken, c.broken)
	}
	return nil
}

package executor

import (
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// decide says why the communicator breaks, which the others are told next: what was
// decided first counts. It reports whether there is anything to do.
func (c *Comm) decide(by levels.Rank, err error) (failure, bool) {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	switch {
	case c.local == nil: // it breaks when it is made
		return failure{peer: by, err: err}, true
	case c.broken != nil || !c.member(by):
		return failure{}, false
	case c.telling.err == nil:
		c.telling = failure{peer: by, err: err}
	}
	return c.telling, true
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
	if c := e.comms[comm]; c != nil && c.remembered(seq).call != nil {
		return c.remembered(seq).call
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

// markSome breaks those of the rank's communicators that pick picks, and says which
// were whole.
func (e *Endpoint) markSome(by levels.Rank, err error, pick func(c *Comm) bool) (ids []CommID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, c := range e.comms {
		if c.local != nil && c.broken == nil && pick(c) {
			c.breakUp(by, err)
			ids = append(ids, id)
		}
	}
	return ids
}

// lose notes that all that a rank of the world is in is broken, and will be. The lock
// is held.
func (e *Endpoint) lose(rank levels.Rank, err error) {
	if !slices.ContainsFunc(e.lost, func(f failure) bool { return f.peer == rank }) {
		e.lost = append(e.lost, failure{peer: rank, err: err})
	}
}

// hasLost tells whether that is so of a rank.
func (e *Endpoint) hasLost(rank levels.Rank) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.lost, func(f failure) bool { return f.peer == rank })
}

// breakUp breaks the communicator because of what happened on a rank of the world.
func (c *Comm) breakUp(by levels.Rank, err error) {
	if c.telling.err != nil && err != ErrClosed {
		by, err = c.telling.peer, c.telling.err
	}
	at := c.number(by)
	if c.broken != nil || at < 0 {
		return
	}
	c.broken = err
	c.e.memory.Leave(c.id)
	if err == ErrClosed {
		return
	}
	c.cause = failure{peer: by, err: err}
	defer c.countHeld()
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
	e.puts.forget(wire.Scope{Comm: c.id})
	e.link.Forget(wire.Scope{Comm: c.id}, e.ears())
	for i := len(e.runs) - 1; i >= 0; i-- {
		if r := e.runs[i]; r.comm == c {
			r.finish(c.broken)
		}
	}
	c.dropEarly()
	c.endTransfers(c.broken)
	c.retire()
	e.sleeper.Wake()
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
	case c.left, c.broken == ErrClosed:
		return ErrClosed
	case c.broken != nil:
		return fmt.Errorf("%w: %w", ErrBroken, c.broken)
	}
	return nil
}

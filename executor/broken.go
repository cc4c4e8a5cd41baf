package executor

import (
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// decideBreak settles the reason for breaking the communicator, before the others are told. The
// first caller gets must: it does the whole work, closes settled and releases the communicator. For
// later callers settled is closed when this returns. Otherwise a goroutine could close the
// communicator, so both sides forget it, and another goroutine's word would make it anew.
func (c *Comm) decideBreak(by levels.Rank, err error) (f failure, way *announcement, must bool) {
	c.e.mu.Lock()
	switch {
	case c.local == nil: // it breaks when it is made
		f, way, must = failure{peer: by, err: err}, newAnnouncement(), true
	case c.broken != nil || !c.isMember(by):
	case c.announcement == nil:
		c.pendingCause, c.announcement = failure{peer: by, err: err}, newAnnouncement()
		f, way, must = c.pendingCause, c.announcement, true
	default:
		way = c.announcement
	}
	if must {
		c.e.world.retain(c.id)
	}
	c.e.mu.Unlock()
	if way != nil && !must {
		<-way.settled
	}
	return f, way, must
}

// breakUp breaks the communicator because of a failure on a rank of the world.
func (c *Comm) breakUp(by levels.Rank, err error) {
	if c.pendingCause.err != nil && err != ErrClosed {
		by, err = c.pendingCause.peer, c.pendingCause.err
	}
	at := c.numberOf(by)
	if c.broken != nil || at < 0 {
		return
	}
	if by == c.e.rank {
		err = c.ownError(err)
	}
	c.broken = err
	c.e.tellNews()
	c.e.memory.Leave(c.id)
	if err == ErrClosed {
		return
	}
	c.cause = failure{peer: by, err: err}
	m, disagree := errors.AsType[*MismatchError](err)
	if disagree { // by has only noticed
		c.e.world.blame(c.oddOne(m), err)
	} else {
		c.e.world.blame(by, err)
	}
	defer c.noteHeldDepartures()
	if disagree {
		c.broken = m
		if m.Comm != c.id {
			c.broken = fmt.Errorf("on communicator %v: %w", m.Comm, m)
		}
	} else if late, ok := errors.AsType[*LateError](err); by != c.e.rank || ok && late.blames(at) {
		c.broken = c.failure(by, err)
	}
	c.e.flight.Break(uint64(c.id), int32(by), c.broken)
	c.noteFailed(by, err)
	if log := c.e.world.config.Log; log != nil {
		log.Error("communicator broken", "rank", c.me, "comm", c.id, "err", c.broken)
	}
}

// ownError returns the error of this rank that others tell it of: they have only the text of it. It
// was met in the call that was to make this communicator. err is what they tell, or an error met here.
func (c *Comm) ownError(err error) error {
	if _, told := errors.AsType[*toldError](err); !told || !c.parent.known {
		return err
	}
	parent := c.e.comms[c.parent.comm]
	switch {
	case parent == nil:
	case parent.cause.err != nil && parent.cause.peer == c.e.rank:
		return parent.cause.err
	case parent.pendingCause.err != nil && parent.pendingCause.peer == c.e.rank: // others are being told
		return parent.pendingCause.err
	}
	return err
}

// markBroken breaks the communicator here; from then on nothing is written into a peer's memory.
// members are its ranks of the world, nil for all.
func (e *Endpoint) markBroken(comm CommID, members rankSet, by levels.Rank, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch c := e.comms[comm]; {
	case members != nil && !members.has(int32(e.rank)):
	case c == nil || c.local == nil:
		c = e.ensureComm(comm)
		c.earlyFailures = append(c.earlyFailures, failure{peer: by, err: err})
		c.dropEarly()
	default:
		c.breakUp(by, err)
	}
}

// markBrokenWhere breaks the rank's communicators picked by pick, and returns those it found whole.
func (e *Endpoint) markBrokenWhere(by levels.Rank, err error, pick func(c *Comm) bool) (ids []CommID) {
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

// blameEverywhere blames a rank in all its communicators, or in one only.
func (t commTable) blameEverywhere(only *Comm, rank levels.Rank, err error) {
	for _, c := range t {
		if (only == nil || only == c) && c.broken == nil && (c.isPresent(rank) || c.e.puts.hasTowards(c, rank)) {
			c.blameRank(rank, err)
		}
	}
}

// endBroken ends the runs of a broken communicator, once all ranks are marked.
func (e *Endpoint) endBroken(comm CommID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.comms[comm]
	if c == nil || c.local == nil {
		return
	}
	if c.broken == nil {
		c.endBeyondLimit()
		return
	}
	e.puts.forget(wire.Scope{Comm: c.id})
	e.link.Forget(wire.Scope{Comm: c.id}, e.sink())
	for i := len(e.runs) - 1; i >= 0; i-- {
		if r := e.runs[i]; r.comm == c {
			r.endSoon(c.broken)
		}
	}
	c.dropEarly()
	c.endTransfers(c.broken)
	c.forgetIfLeft()
	e.sleeper.Wake()
}

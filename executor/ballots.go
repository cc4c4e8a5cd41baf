package executor

import (
	"github.com/tierflow/tierflow/executor/ballot"
	"github.com/tierflow/tierflow/levels"
)

// hearBallot takes a message of an agreement. Who hears of the first one on a communicator that is
// whole here breaks it.
func (e *Endpoint) hearBallot(from levels.Rank, t ballot.Topic, b []byte) {
	m := e.voter.Find(t)
	e.mu.Lock()
	c := e.comms[t.Comm]
	may := c != nil && !e.stopped && !c.left && c.isMember(from)
	if m == nil && may && t.Round > 0 && t.Round+1 < c.agreed {
		ranks := c.ranks
		e.mu.Unlock()
		e.voter.Refuse(t, ranks, from, b)
		return
	}
	if m == nil && may {
		m = e.openMatter(c, t.Round)
	}
	whole := may && t.Round == 0 && c.broken == nil
	e.mu.Unlock()
	if m == nil {
		return // it is said again
	}
	if whole {
		e.world.failHere(t.Comm, c.members(), from, ErrRevoked)
	}
	if t.Round == 0 && c != nil {
		m.Begin(c.countComplete(), true)
	}
	_ = m.Hear(from, b) // what makes no sense is not heard
}

// openMatter returns an agreement; nil if this rank votes no more. The lock is held.
func (e *Endpoint) openMatter(c *Comm, round uint32) *ballot.Matter {
	return e.voter.Open(c.topic(round), c.ranks)
}

// countComplete returns how many calls on a communicator that is broken have their data complete here.
func (c *Comm) countComplete() uint32 {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.complete
}

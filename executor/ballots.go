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
	moved := c != nil && c.next != nil && t.Round > c.agreed // its program asks nothing here any more
	may := c != nil && !e.stopped && (moved || !c.left) && c.isMember(from)
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
	if moved {
		m.Begin(0, false)
	}
	_ = m.Hear(from, b) // what makes no sense is not heard
}

// refuseWords says no for the program wherever the others ask what it has not answered: it has gone on with another
// communicator, and they need not wait.
func (c *Comm) refuseWords() {
	c.e.mu.Lock()
	id, agreed := c.id, c.agreed
	c.e.mu.Unlock()
	for _, m := range c.e.voter.FindAll(id) {
		if m.Topic.Round > agreed {
			m.Begin(0, false)
		}
	}
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

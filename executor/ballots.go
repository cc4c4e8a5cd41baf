package executor

import (
	"github.com/tierflow/tierflow/executor/internal/ballot"
	"github.com/tierflow/tierflow/levels"
)

// hearBallot takes a message of an agreement. The first one on a communicator breaks it, if it is
// whole here, for the reason in the note, of which this rank has not heard before. A rank of this process gives none.
func (e *Endpoint) hearBallot(from levels.Rank, n note) {
	t := ballot.Topic{Comm: n.Comm, Round: n.Seq}
	m := e.voter.Find(t)
	e.mu.Lock()
	c := e.comms[t.Comm]
	moved := c != nil && c.succeeded && t.Round > c.agreements // its program asks nothing here any more
	may := c != nil && !e.stopped && (moved || !c.hasLeft) && c.isMember(from)
	if m == nil && may && t.Round > 0 && t.Round+1 < c.agreements {
		ranks := c.ranks
		e.mu.Unlock()
		e.voter.Refuse(t, ranks, from, n.Ballot, n.Straight)
		return
	}
	if m == nil && may {
		m = c.openAgreement(t.Round) // nil if this rank votes no more
	}
	whole := may && t.Round == 0 && c.broken == nil
	e.mu.Unlock()
	if m == nil {
		return // it is said again
	}
	if whole && n.Text != "" {
		e.world.control.hearFailure(from, n)
	} else if whole {
		e.world.failHere(t.Comm, c.members(), from, ErrRevoked)
	}
	if t.Round == 0 && c != nil {
		m.Begin(c.countComplete(), true)
	}
	if moved {
		m.Begin(0, false)
	}
	_ = m.Hear(from, n.Ballot, n.Straight) // nonsense is dropped
}

// refuseWords votes no in every agreement still waiting for this rank's program: the program has
// gone on with another communicator, and the others need not wait for it.
func (c *Comm) refuseWords() {
	c.e.mu.Lock()
	id, agreed := c.id, c.agreements
	c.e.mu.Unlock()
	for _, m := range c.e.voter.FindAll(id) {
		if m.Topic.Round > agreed {
			m.Begin(0, false)
		}
	}
}

// countComplete returns the number of calls on a broken communicator with complete data here.
func (c *Comm) countComplete() uint32 {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.completeCalls
}

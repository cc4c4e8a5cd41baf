package executor

import (
	"context"
	"slices"

	"github.com/tierflow/tierflow/executor/ballot"
	"github.com/tierflow/tierflow/levels"
)

// out lists the members that go on with nobody, ranks of the world. The lock is held.
func (c *Comm) out() []levels.Rank {
	all := slices.Clone(c.never)
	for _, list := range [][]departure{c.gone, c.held} {
		for _, d := range list {
			if !d.onward {
				all = append(all, d.rank)
			}
		}
	}
	return all
}

// ballotPort is how the engine's voter reaches the other ranks.
func (e *Endpoint) ballotPort() ballot.Port {
	p := ballot.Port{Send: e.sendBallot, Lost: e.whoIsLost, Decided: e.fence}
	p.Draw = func() uint64 {
		id, _ := e.Draw() // without one the communicator can't be made
		return uint64(id)
	}
	p.Gone = func(ctx context.Context, r levels.Rank) bool {
		return e.world.control != nil && e.world.control.job.Gone(ctx, r)
	}
	return p
}

func (e *Endpoint) sendBallot(to levels.Rank, t ballot.Topic, b []byte) {
	if other := e.world.endpoints[to]; other != nil {
		other.hearBallot(e.rank, t, b)
		return
	}
	e.world.control.sendBallot(to, note{Comm: t.Comm, Seq: t.Round, Ballot: b})
}

// whoIsLost returns who counts as lost for an agreement, and whose end is certain. It looks for
// goodbyes too: perhaps nobody drives.
func (e *Endpoint) whoIsLost(t ballot.Topic) (lost, ended []levels.Rank) {
	e.mu.Lock()
	defer e.releaseAlone()
	e.hearLast()
	for _, f := range e.lost {
		lost = append(lost, f.peer)
	}
	lost, ended = append(lost, e.dead...), slices.Clone(e.ended)
	for _, id := range []CommID{0, t.Comm} {
		if c := e.comms[id]; c != nil {
			ended = append(ended, c.out()...)
		}
	}
	return lost, ended
}

// fence lets this rank have nothing more to do with those who were only suspected, or who have gone on
// without it.
func (e *Endpoint) fence(m *ballot.Matter) {
	d := m.Decision()
	if m.Topic.Round != 0 {
		return
	}
	me := slices.Index(m.Members, e.rank)
	strangers := d.Lost.Without(d.Proven)
	if !d.Members.Has(me) {
		strangers = d.Members
	}
	for _, n := range strangers.Ranks() {
		r := m.Members[n]
		if n == me {
			continue
		}
		e.world.failHereRank(e, r)
	}
}

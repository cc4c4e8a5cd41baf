package executor

import (
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/internal/ballot"
	"github.com/tierflow/tierflow/levels"
)

// ballotPort returns the voter's way to the other ranks.
func (e *Endpoint) ballotPort() ballot.Port {
	p := ballot.Port{Lost: e.whoIsLost, Decided: e.carryDecision}
	p.Send = func(to levels.Rank, t ballot.Topic, b []byte, straight bool) {
		e.world.sendBallot(e.rank, to, t, b, straight)
	}
	p.Draw = func() uint64 {
		id, _ := e.Draw() // without a number the communicator can't be made
		return uint64(id)
	}
	p.Silent, p.Muted = e.silentRanks, e.noteMuted
	p.Gone = func(ctx context.Context, r levels.Rank) bool {
		return e.world.control != nil && e.world.control.job.Gone(ctx, r)
	}
	return p
}

// sendBallot takes a message of an agreement from a rank of this process to any rank.
func (w *World) sendBallot(from, to levels.Rank, t ballot.Topic, b []byte, straight bool) {
	if other := w.endpoints[to]; other != nil {
		other.hearBallot(from, note{Comm: t.Comm, Seq: t.Round, Ballot: b})
		return
	}
	n := w.endpoints[from].brokenNote(t)
	n.Comm, n.Seq, n.Ballot, n.Straight = t.Comm, t.Round, b, straight
	if straight {
		w.control.sendDirect(to, n.bytes())
		return
	}
	w.control.sendBallot(to, n)
}

// brokenNote returns a note that says why the communicator is broken that an agreement is to go on from: another rank may hear
// of the agreement first.
func (e *Endpoint) brokenNote(t ballot.Topic) (n note) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.comms[t.Comm]; c != nil && t.Round == 0 && c.cause.err != nil {
		n = failureNote(c.cause.peer, c.cause.err)
	}
	return n
}

// silentRanks returns those of some ranks of the world that don't say what they do. A rank in an operation of its
// program does.
func (e *Endpoint) silentRanks(ranks []levels.Rank, isOver func() bool) (silent []levels.Rank) {
	for _, s := range e.world.states(ranks, askReason{comm: noComm}, isOver) {
		if s.Doing == flight.Silent || s.Doing == flight.Stopped || s.Doing == flight.Gone {
			silent = append(silent, levels.Rank(s.Rank))
		}
	}
	return silent
}

// noteMuted notes a rank that counts as lost from now on because it was silent.
func (e *Endpoint) noteMuted(r levels.Rank) {
	e.mu.Lock()
	e.muted = append(e.muted, r)
	e.mu.Unlock()
	if log := e.world.config.Stalls; log != nil {
		log.Warn("a rank counts as lost", "rank", e.rank, "lost", r, "why", errMuted)
	}
}

// whoIsLost returns the ranks lost for an agreement, the ranks with a certain end, and those that this
// rank leaves out. It polls for goodbyes too: perhaps nobody drives.
func (e *Endpoint) whoIsLost(t ballot.Topic) (lost, ended, left []levels.Rank) {
	e.mu.Lock()
	defer e.releaseAlone()
	e.drainLink()
	for _, f := range e.lost {
		lost = append(lost, f.peer)
	}
	lost, ended = append(lost, e.dead...), slices.Clone(e.ended)
	if c := e.comms[t.Comm]; c != nil && t.Round == 0 {
		left = slices.Clone(c.leftOut)
	}
	for _, id := range []CommID{0, t.Comm} {
		if c := e.comms[id]; c != nil {
			ended = append(ended, c.outsiders()...)
		}
	}
	return lost, ended, left
}

// carryDecision ends everything between this rank and the ranks only suspected, or those gone on
// without it. It makes this rank's end of the next communicator: the others may vote on that one
// long before the program of this rank asks for it.
func (e *Endpoint) carryDecision(m *ballot.Agreement) {
	d := m.Decision()
	if m.Topic.Round != 0 {
		return
	}
	me := slices.Index(m.Members, e.rank)
	if d.Members.Has(me) {
		e.makeNext(m)
	}
	strangers := d.Lost.Without(d.Proven)
	if !d.Members.Has(me) {
		strangers = d.Members
	}
	for _, n := range strangers.Ranks() {
		r := m.Members[n]
		if n == me {
			continue
		}
		err, told, member := ErrExcluded, ErrExcluded, d.Members.Has(me)
		if member {
			err = e.whyStranger(m.Topic.Comm, r)
			if told = err; err == errMuted { // the others hear it in the words of a loss
				told = fmt.Errorf("was lost: %w", err)
			}
		}
		e.world.failHereRank(e, r, told)
		if e.world.control != nil { // neither waits for the other one in Close, nor for messages that it should pass on
			e.world.control.job.Lose(r, err, member)
		}
	}
}

// whyStranger returns why a rank of the world is out, though its end is not certain.
func (e *Endpoint) whyStranger(id CommID, r levels.Rank) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.comms[id]; c != nil && slices.Contains(c.leftOut, r) {
		return errLeftOut
	}
	if slices.Contains(e.muted, r) {
		return errMuted
	}
	return errUnseen
}

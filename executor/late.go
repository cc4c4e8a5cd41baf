package executor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// beginLate finds out why the call or transfer has missed its deadline, and then breaks the
// communicator, unless it ends meanwhile. alone: it is a receive that ends alone if it still has no message.
// The lock is held.
func (n *ending) beginLate(ctx context.Context, alone bool) {
	e, life := n.comm.e, n.life
	n.overdue = true
	isOver := func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return n.finished || n.life != life || e.stopped
	}
	e.inBackground(func() {
		if alone {
			_, err := n.explainLate(context.Cause(ctx), n.comm.statesInChain, isOver)
			if late, ok := errors.AsType[*LateError](err); ok {
				if late.Alone = true; len(late.Circle) > 0 {
					e.pauseUnless(lastTurn, isOver) // for the others in it to see it, too
				}
			}
			if n.alone.withdrawUnlessOver(err) {
				return
			}
		}
		leave := n.comm.awaitTurn(&n.comm.askedLate, isOver)
		defer leave()
		if isOver() {
			return
		}
		by, err := n.explainLate(context.Cause(ctx), n.comm.statesOfAll, isOver)
		if !isOver() {
			e.world.failComm(n.comm, by, err)
		}
	})
}

// statesOfAll asks all ranks of the communicator for their states, because a call or transfer is late.
func (c *Comm) statesOfAll(mine flight.Open, isOver func() bool) []flight.State {
	return c.e.world.states(c.ranks, askReason{c.id, mine.Seq, !mine.Transfer, true}, isOver)
}

// longestChain bounds the ranks asked because of one receive.
const longestChain = 8

// statesInChain asks the rank that a receive waits for. It goes on with those that one waits for, as long as new ones come.
func (c *Comm) statesInChain(mine flight.Open, isOver func() bool) []flight.State {
	ask := func(ranks ...levels.Rank) []flight.State {
		return c.e.world.states(ranks, askReason{comm: noComm}, isOver)
	}
	mine.Awaited = true // also where its waiter is between two waits
	states := ask(c.e.rank)
	for next := unasked(states, mine); len(next) > 0 && len(states)+len(next) <= longestChain; {
		states = append(states, ask(next...)...)
		next = nil
		for _, s := range states {
			next = append(next, unasked(states, s.Open...)...)
		}
		slices.Sort(next)
		next = slices.Compact(next)
	}
	return states
}

// unasked returns the ranks of the world that the program waits for in some calls, but for those whose states are known.
func unasked(known []flight.State, calls ...flight.Open) (ranks []levels.Rank) {
	for _, o := range calls {
		for _, r := range o.Peers {
			if o.Awaited && !slices.ContainsFunc(known, func(s flight.State) bool { return s.Rank == r }) {
				ranks = append(ranks, levels.Rank(r))
			}
		}
	}
	return ranks
}

// explainLate asks for states. It returns the error, and the rank to blame: the first late one, else this one.
func (n *ending) explainLate(cause error, ask func(flight.Open, func() bool) []flight.State, isOver func() bool) (by levels.Rank, err error) {
	c := n.comm
	mine, come := n.describe()
	late := &LateError{Request: mine.What, For: mine.For, Err: cause}
	states := ask(mine, isOver)
	named := func(s flight.State) LateRank { return LateRank{c.numberOf(levels.Rank(s.Rank)), s} }
	for _, s := range verdict.Circle(states, wire.Tick) {
		late.Circle = append(late.Circle, named(s))
	}
	if !mine.Transfer {
		for _, s := range verdict.Missing(states, mine.Comm, mine.Seq) {
			late.Late = append(late.Late, named(s))
		}
	}
	var others []LateRank
	for _, s := range states {
		_, known := s.HasCome(mine.Comm, mine.Seq)
		computes := computesFor(&s, mine)
		switch {
		case levels.Rank(s.Rank) == c.e.rank && !computes:
		case mine.Transfer && slices.Contains(mine.Peers, s.Rank):
			late.Late = append(late.Late, named(s))
		case !mine.Transfer && (computes || !known) && (s.Doing != flight.Left || !come.has(int32(c.numberOf(levels.Rank(s.Rank))))):
			others = append(others, named(s))
		}
	}
	if len(late.Late) == 0 {
		late.Late = others
	}
	if len(late.Late) == 0 || len(late.Circle) > 0 {
		return c.e.rank, late
	}
	return c.ranks[late.Late[0].Rank], late
}

// computesFor reports whether a rank is in an operation that may hold up a collective: not in that of a call on another
// communicator, or of a later one, after it has come to the collective.
func computesFor(s *flight.State, call flight.Open) bool {
	if come, _ := s.HasCome(call.Comm, call.Seq); s.Doing != flight.Computing || !come {
		return s.Doing == flight.Computing
	}
	elsewhere := false
	for _, o := range s.Open {
		if o.Operating && o.Comm == call.Comm && int32(o.Seq-call.Seq) <= 0 {
			return true
		}
		elsewhere = elsewhere || o.Operating
	}
	return !elsewhere // then it is left out
}

// describe returns the call's state, and the ranks in it as far as this one has heard.
func (n *ending) describe() (o flight.Open, come rankSet) {
	e, now := n.comm.e, time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range n.comm.runs {
		if &r.ending == n {
			return r.open(now), slices.Clone(r.present)
		}
	}
	e.comms.eachTransfer(&e.puts, func(t *Transfer, way string, moves bool) {
		if &t.ending == n {
			o = t.open(way, moves, now)
		}
	})
	return o, nil
}

// Ranks ask in turn. Each waits nextTurn for each rank with a lower number, less in a large
// communicator, so the last one waits lastTurn.
const (
	nextTurn = 10 * time.Millisecond
	lastTurn = 200 * time.Millisecond
)

// awaitTurn lets one rank of a communicator ask all others at a time: mostly all have reason to at
// once. Lower ranks ask first, and the others wait for the outcome. last is the time of the last
// question heard. leave lets the next rank of this process ask.
func (c *Comm) awaitTurn(last *time.Time, isOver func() bool) (leave func()) {
	w := c.e.world
	if w.control != nil {
		since := time.Now()
		turn := since.Add(time.Duration(c.me) * min(nextTurn, lastTurn/time.Duration(c.Size())))
		end := since.Add(lastTurn + lateTime)
		left := func() time.Duration {
			c.e.mu.Lock()
			defer c.e.mu.Unlock()
			return min(max(time.Until(turn), time.Until(last.Add(lateTime))), time.Until(end))
		}
		for d := left(); d > 0 && !isOver(); d = left() {
			c.e.pauseUnless(d, isOver)
		}
	}
	w.askTurn <- struct{}{}
	return func() { <-w.askTurn }
}

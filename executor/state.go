package executor

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// Bounds of the lists in a state, so it fits into a note.
const (
	maxCalled = 64
	maxPeers  = 64
)

// State returns the rank's state, without its program's place. comm comes first in State.Called.
func (e *Endpoint) State(comm CommID) flight.State {
	s := flight.State{Rank: int(e.rank), PID: os.Getpid()}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Doing = flight.Outside; e.stopped {
		s.Doing = flight.Left
	}
	now := time.Now()
	for _, r := range e.runs {
		s.Open = append(s.Open, r.open(now))
	}
	e.comms.eachTransfer(&e.puts, func(t *Transfer, way string, moves bool) { s.Open = append(s.Open, t.open(way, moves, now)) })
	slices.SortStableFunc(s.Open, func(a, b flight.Open) int { return boolToInt(b.Awaited) - boolToInt(a.Awaited) })
	switch {
	case slices.ContainsFunc(s.Open, func(o flight.Open) bool { return o.Operating }):
		s.Doing = flight.Computing
	case len(s.Open) > 0 && s.Open[0].Awaited:
		s.Doing = flight.Inside
	}
	s.Open = s.Open[:min(flight.MaxOpen, len(s.Open))]
	s.Called = e.comms.listCalled(comm)
	if len(e.votes) > 0 {
		s.Votes = e.votes[0]
	}
	if e.failed != nil {
		f := *e.failed
		f.Ago = now.Sub(e.failedAt)
		s.Failed = &f
	}
	if what, seq, ago, ok := e.flight.LastEnded(); ok {
		s.Last, s.Since = fmt.Sprintf("%s #%d", what, seq), ago
	}
	return s
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// isAwaited reports whether a goroutine of the program waits for it.
func (n *ending) isAwaited() bool {
	e := n.comm.e
	return e.driving && e.driver.n == n || slices.Contains(e.waiters, n)
}

// open describes a run on its way.
func (r *Run) open(now time.Time) flight.Open {
	o := flight.Open{
		Comm: uint64(r.comm.id), Seq: r.seq, What: shortenText(r.b.Request), Waits: r.awaitedSteps(), Awaited: r.isAwaited(),
	}
	if !r.hasMoved && !r.since.IsZero() {
		o.For = stoodStill(now.Sub(r.since))
	}
	o.Operating = r.isOperating(now)
	r.eachStuck(func(_ *submodules.Step, peer levels.Rank) {
		if len(o.Peers) < maxPeers && !slices.Contains(o.Peers, int(peer)) {
			o.Peers = append(o.Peers, int(peer))
		}
	})
	return o
}

// stoodStill returns the time for [flight.Open]: less than a tick counts as 0.
func stoodStill(d time.Duration) time.Duration {
	if d < wire.Tick {
		return 0
	}
	return d
}

// open describes a transfer on its way.
func (t *Transfer) open(way string, moves bool, now time.Time) flight.Open {
	o := flight.Open{Comm: uint64(t.comm.id), What: t.name(way), Transfer: true, Awaited: t.isAwaited()}
	if t.since != 0 {
		o.For = stoodStill(time.Duration(t.comm.e.world.config.stallTime(now) - t.since))
	}
	if way == recvWay && !moves {
		o.What = t.unmatched()
	}
	switch {
	case t.peer == anyRank:
		o.Any, o.Peers = true, t.comm.otherRanks(maxPeers)
	case !moves:
		o.Peers = []int{int(t.peer)}
	}
	return o
}

// otherRanks returns the other ranks of the communicator, by their numbers in the world; nil if they are too many.
func (c *Comm) otherRanks(most int) (others []int) {
	if len(c.ranks)-1 > most {
		return nil
	}
	for _, r := range c.ranks {
		if r != c.e.rank {
			others = append(others, int(r))
		}
	}
	return others
}

// listCalled returns the rank's number of calls on each communicator, that of first at the top.
func (t commTable) listCalled(first CommID) (list []flight.Called) {
	add := func(c *Comm) {
		if c != nil && c.local != nil && len(list) < maxCalled {
			list = append(list, flight.Called{Comm: uint64(c.id), Calls: c.seq, Heard: c.heard})
		}
	}
	add(t[first])
	for id, c := range t {
		if id != first {
			add(c)
		}
	}
	if len(list) > 1 {
		slices.SortFunc(list[1:], func(a, b flight.Called) int { return cmp.Compare(a.Comm, b.Comm) })
	}
	return list
}

package executor

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// Bounds of what a state lists, so that it fits into a note.
const (
	maxOpen   = 16
	maxCalled = 64
	maxPeers  = 64
)

// State returns what the rank is in, without where its program stands. comm is the
// communicator that comes first in State.Called. A rank in a caller's operation is waited
// for for 250 ms.
func (e *Endpoint) State(comm CommID) flight.State {
	s := flight.State{Rank: int(e.rank), Doing: flight.Computing, PID: os.Getpid()}
	if !e.lockWithin(lockTime) {
		return s
	}
	defer e.mu.Unlock()
	if s.Doing = flight.Outside; e.stopped {
		s.Doing = flight.Left
	}
	now := time.Now()
	for _, r := range e.runs {
		s.Open = append(s.Open, r.open(now))
	}
	e.eachTransfer(func(t *Transfer, way string, moves bool) { s.Open = append(s.Open, t.open(way, moves, now)) })
	slices.SortStableFunc(s.Open, func(a, b flight.Open) int { return boolToInt(b.Awaited) - boolToInt(a.Awaited) })
	if len(s.Open) > 0 && s.Open[0].Awaited {
		s.Doing = flight.Inside
	}
	s.Open = s.Open[:min(maxOpen, len(s.Open))]
	s.Called, s.Failed = e.comms.listCalled(comm), e.failed
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

// open describes a run that has not ended.
func (r *Run) open(now time.Time) flight.Open {
	o := flight.Open{
		Comm: uint64(r.comm.id), Seq: r.seq, What: shortenText(r.b.Request), Waits: r.awaitedSteps(), Awaited: r.isAwaited(),
	}
	if !r.moved && !r.since.IsZero() {
		o.For = stoodStill(now.Sub(r.since))
	}
	r.eachStuck(func(_ *submodules.Step, peer levels.Rank) {
		if len(o.Peers) < maxPeers && !slices.Contains(o.Peers, int(peer)) {
			o.Peers = append(o.Peers, int(peer))
		}
	})
	return o
}

// stoodStill returns a time as [flight.Open] has it: less than a tick is none.
func stoodStill(d time.Duration) time.Duration {
	if d < wire.Tick {
		return 0
	}
	return d
}

// The ways of transfers.
const (
	sendWay = "send"
	recvWay = "receive"
)

// eachTransfer calls f for each transfer that has not ended. moves: its bytes are on their
// way, so its peer has come.
func (e *Endpoint) eachTransfer(f func(t *Transfer, way string, moves bool)) {
	if e.transfers == 0 {
		return
	}
	for _, c := range e.comms {
		for _, t := range c.sends {
			f(t, sendWay, false)
		}
		for t := range c.recvs.all() {
			f(*t, recvWay, false)
		}
		for _, t := range c.given {
			f(t, recvWay, true)
		}
	}
	for _, by := range e.puts.all {
		if by.transfer != nil {
			f(by.transfer, sendWay, true)
		}
	}
}

// awaitedBy is what a transfer waits for whose peer has not come.
var awaitedBy = map[string]string{sendWay: "a receive", recvWay: "a message"}

// name says what the transfer is: receive from rank 1, tag 5.
func (t *Transfer) name(way string) string {
	to := t.comm.numberOf(t.peer)
	if way == sendWay {
		return fmt.Sprintf("send %d bytes to rank %d, tag %d", len(t.buf), to, t.tag)
	}
	return fmt.Sprintf("receive from rank %d, tag %d", to, t.tag)
}

// open describes a transfer that has not ended.
func (t *Transfer) open(way string, moves bool, now time.Time) flight.Open {
	o := flight.Open{Comm: uint64(t.comm.id), What: t.name(way), Transfer: true, Awaited: t.isAwaited()}
	if t.since != 0 {
		o.For = stoodStill(time.Duration(t.comm.e.stallTime(now) - t.since))
	}
	if !moves {
		o.Peers = []int{int(t.peer)}
	}
	return o
}

// stallTime is what Transfer.since counts: nanoseconds, never 0.
func (e *Endpoint) stallTime(now time.Time) int64 {
	return max(1, int64(now.Sub(e.world.config.Hooks.Epoch)))
}

// listCalled returns how far the rank is on each of them, on one first.
func (t commTable) listCalled(first CommID) (list []flight.Called) {
	add := func(c *Comm) {
		if c != nil && c.local != nil && len(list) < maxCalled {
			list = append(list, flight.Called{Comm: uint64(c.id), Calls: c.seq})
		}
	}
	add(t[first])
	for id, c := range t {
		if id != first {
			add(c)
		}
	}
	if len(list) > 1 {
		slices.SortFunc(list[1:], func(a, b flight.Called) int { return boolToInt(a.Comm > b.Comm) - boolToInt(a.Comm < b.Comm) })
	}
	return list
}

// lockTime bounds the wait for a rank in a caller's operation.
const lockTime = 250 * time.Millisecond

// lockWithin tries to get the lock: a rank holds it while it calls an operation of
// the user, which may take for ever.
func (e *Endpoint) lockWithin(limit time.Duration) bool {
	for until := time.Now().Add(limit); !e.mu.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

package executor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// LateError says that the deadline of a call has passed, and which ranks it waited for. All
// ranks of the communicator get the same.
type LateError struct {
	Request string        // allreduce 1024 f32 sum, or receive from rank 1, tag 5
	For     time.Duration // that the call had stood still; 0: less than a tenth of a second
	// Late are the ranks that had not come to the call, or the peer of a send or receive. If
	// all had come they are those that don't answer or are in an operation. None: the time
	// was too short for what was to be done.
	Late []LateRank
	// Circle are ranks that wait for each other, each for the next one. nil: there are none.
	Circle []LateRank
	Err    error `json:"-"` // the cause of the context
}

// LateRank is a rank of the communicator and what it was in when the deadline passed.
type LateRank struct {
	Rank  levels.Rank
	State flight.State
}

// Error names the late ranks, what they are in, since when and where.
func (e *LateError) Error() string {
	var parts []string
	if len(e.Circle) > 0 {
		parts = append(parts, "deadlock: "+circleText(e.Circle))
	} else {
		for i, l := range e.Late {
			if i == maxWaits {
				parts = append(parts, fmt.Sprintf("%d more ranks", len(e.Late)-i))
				break
			}
			parts = append(parts, l.text(e.For))
		}
	}
	if len(parts) == 0 {
		parts = []string{"all ranks have come, and it has not ended"}
	}
	return fmt.Sprintf("%s: %s: %v", e.Request, strings.Join(parts, "; "), e.Err)
}

// Unwrap returns the cause of the context.
func (e *LateError) Unwrap() error { return e.Err }

// text says why the rank is named.
func (l *LateRank) text(after time.Duration) string {
	switch l.State.Doing {
	case flight.Silent:
		return fmt.Sprintf("rank %d does not answer", l.Rank)
	case flight.Computing:
		return fmt.Sprintf("rank %d is %v", l.Rank, &l.State)
	}
	text := fmt.Sprintf("rank %d has not come", l.Rank)
	if after >= wire.Tick {
		text += fmt.Sprintf(" for %.1f s", after.Seconds())
	}
	return text + ", it is " + l.State.String()
}

// circleText says who waits for whom.
func circleText(all []LateRank) string {
	var b strings.Builder
	for _, l := range all {
		fmt.Fprintf(&b, "rank %d is %v; ", l.Rank, &l.State)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// beginLate finds out why the deadline of what n is has passed, and then breaks the
// communicator, unless it ends meanwhile. The lock is held.
func (n *ending) beginLate(ctx context.Context) {
	e, life := n.comm.e, n.life
	n.overdue = true
	isOver := func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return n.finished || n.life != life || e.stopped
	}
	e.inBackground(func() {
		leave := n.comm.awaitTurn(&n.comm.askedLate, isOver)
		defer leave()
		if isOver() {
			return
		}
		by, err := n.explainLate(context.Cause(ctx), isOver)
		if !isOver() {
			e.world.failComm(n.comm, by, err)
		}
	})
}

// explainLate asks all ranks of the communicator what they are in. It returns the error,
// and the rank to blame: the first late one, else this one.
func (n *ending) explainLate(cause error, isOver func() bool) (by levels.Rank, err error) {
	c := n.comm
	mine, come := n.describe()
	late := &LateError{Request: mine.What, For: mine.For, Err: cause}
	states := c.e.world.states(c.ranks, about{c.id, mine.Seq, !mine.Transfer, true}, isOver)
	named := func(s flight.State) LateRank { return LateRank{c.numberOf(levels.Rank(s.Rank)), s} }
	for _, s := range flight.Deadlock(states, wire.Tick) {
		late.Circle = append(late.Circle, named(s))
	}
	var unknown []LateRank
	for _, s := range states {
		has, known := s.HasCome(mine.Comm, mine.Seq)
		switch {
		case levels.Rank(s.Rank) == c.e.rank:
		case mine.Transfer && !hasPeer(mine, s.Rank):
		case mine.Transfer, known && !has:
			late.Late = append(late.Late, named(s))
		case !known && (s.Doing == flight.Computing || !come.has(int32(c.numberOf(levels.Rank(s.Rank))))):
			unknown = append(unknown, named(s))
		}
	}
	if len(late.Late) == 0 {
		late.Late = unknown
	}
	if len(late.Late) == 0 || len(late.Circle) > 0 {
		return c.e.rank, late
	}
	return c.ranks[late.Late[0].Rank], late
}

func hasPeer(o flight.Open, rank int) bool {
	for _, p := range o.Peers {
		if p == rank {
			return true
		}
	}
	return false
}

// describe returns what the call is, and which ranks have come to it as far as this one
// has heard.
func (n *ending) describe() (o flight.Open, come rankSet) {
	e, now := n.comm.e, time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range n.comm.runs {
		if &r.ending == n {
			return r.open(now), append(rankSet(nil), r.came...)
		}
	}
	e.eachTransfer(func(t *Transfer, way string, moves bool) {
		if &t.ending == n {
			o = t.open(way, moves, now)
		}
	})
	return o, nil
}

// A rank waits for nextTurn for each one with a lower number before it asks all others, of
// many ranks less, so that the last one waits for lastTurn.
const (
	nextTurn = 10 * time.Millisecond
	lastTurn = 200 * time.Millisecond
)

// awaitTurn lets one rank of a communicator ask all others at a time: mostly all have
// reason to at once. The lower a rank is the sooner it asks, and the others wait for what
// comes of it. last is when a rank was heard to ask. leave lets the next one of this
// process ask.
func (c *Comm) awaitTurn(last *time.Time, isOver func() bool) (leave func()) {
	w := c.e.world
	if w.control != nil {
		since := time.Now()
		turn := since.Add(time.Duration(c.me) * min(nextTurn, lastTurn/time.Duration(c.Size())))
		for end := since.Add(lastTurn + lateTime); !isOver() && time.Now().Before(end); time.Sleep(time.Millisecond) {
			c.e.mu.Lock()
			heard := *last
			c.e.mu.Unlock()
			if !time.Now().Before(turn) && time.Since(heard) > lateTime {
				break
			}
		}
	}
	w.asking <- struct{}{}
	return func() { <-w.asking }
}

package executor

import (
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// departure is a rank that has closed its end, after some number of runs. Nothing that
// it sent is still on its way.
type departure struct {
	rank levels.Rank // of the world
	seq  uint32
	// fromAll: it has closed the communicator of all ranks. If it ever made this one, a
	// departure of its own says after how many runs; else it took part in none.
	fromAll bool
	// broken: the communicator had broken there. Here it is about to break for the same
	// reason; that, not the departure, ends what waits for the rank.
	broken bool
	since  time.Time // when this rank heard of it; only of one fromAll
}

// origin is the call that made a communicator, known or not.
type origin struct {
	comm  CommID
	seq   uint32
	known bool
}

// disowned is a call in which a rank failed: it has none of the communicators that
// others may have made in it.
type disowned struct {
	seq uint32
	by  levels.Rank // of the world
	err error
}

// limit is where the runs of a communicator end, because a rank has left it and
// another one has started a run without it: those from seq on fail. The ones
// before, in which that rank took part, and transfers go on.
type limit struct {
	seq uint32
	err error
}

// within tells whether what is put belongs to a scope.
func (by putter) within(s wire.Scope) bool {
	if by.run != nil {
		return by.run.comm.id == s.Comm && (!s.Later || int32(by.run.seq-s.Seq) >= 0)
	}
	return by.transfer != nil && by.transfer.comm.id == s.Comm && !s.Later
}

// hearBye takes a goodbye. One on the communicator of all ranks counts for all that the
// rank is in: it may never have made some of them, and then will not say it there.
func (e *Endpoint) hearBye(c *Comm, d departure) {
	c.departed(d)
	if c.id != 0 {
		return
	}
	d.fromAll, d.broken, d.since = true, false, time.Now()
	for _, other := range e.comms {
		if other != c {
			other.departed(d)
		}
	}
}

// byeHalf is which half of a goodbye has come. Between processes one over a link, on a
// communicator that is broken, doesn't count until the control tree has said goodbye too,
// with the reason. Between goroutine ranks whoever breaks it is about to break it here too.
type byeHalf uint8

const (
	byLink byeHalf = 1 + iota
	byControl
)

// wholeBye notes one half of a goodbye and reports whether the other one has come.
func (c *Comm) wholeBye(from levels.Rank, half byeHalf) bool {
	if c.halves[from] == byLink+byControl-half {
		delete(c.halves, from)
		return true
	}
	if c.halves == nil {
		c.halves = map[levels.Rank]byeHalf{}
	}
	c.halves[from] = half
	return false
}

// departed notes that a rank has left, if it is a member; who is, is known only when
// this rank has made the communicator.
func (c *Comm) departed(d departure) {
	if c.local == nil && d.fromAll || c.local != nil && !c.member(d.rank) {
		return
	}
	if c.local == nil {
		c.gone = append(c.gone, d)
		return
	}
	if c.broken == nil && (d.broken || c.telling.err != nil) {
		c.held = append(c.held, d)
		return
	}
	c.gone = append(c.gone, d)
	if c.broken == nil { // else what is on its way ends because of that
		for _, r := range c.e.runs {
			c.missing(r)
		}
		c.abandon(d)
	}
	c.miss(d.rank)
}

// countHeld counts the goodbyes that came just before the communicator broke.
func (c *Comm) countHeld() {
	held := c.held
	c.held = nil
	for _, d := range held {
		c.departed(d)
	}
}

// miss notes that a rank of the world has left, or died.
func (c *Comm) miss(rank levels.Rank) {
	if c.member(rank) {
		c.away.set(c.local[rank])
		c.retire()
	}
}

// missing fails a run that a rank which has left will never take part in.
func (c *Comm) missing(r *Run) {
	for _, d := range c.gone {
		if r.comm == c && !d.fromAll && int32(r.seq-d.seq) >= 0 {
			err := fmt.Errorf("left before call %d: %w", r.seq, ErrClosed)
			c.e.failing = append(c.e.failing, failure{comm: c, peer: d.rank, err: err, seq: d.seq, later: true})
			return
		}
	}
}

// lateGoodbye is how long after a rank's goodbye to all its goodbye on one communicator
// may come: by another way, on a machine that is very busy.
const lateGoodbye = 5 * time.Second

// deserted fails a run that has stood still for some time and waits for a rank
// which has left after it: all that this one sent is here, so the ranks didn't call
// the same. It also fails one on a communicator that a rank which has left everything
// never made: whoever waits for that rank, it may be somebody else.
func (c *Comm) deserted(r *Run, now time.Time) {
	if len(c.gone) == 0 || now.Sub(r.since) < grace {
		return
	}
	for _, d := range c.gone {
		if d.fromAll && !slices.ContainsFunc(c.gone, func(o departure) bool { return o.rank == d.rank && !o.fromAll }) {
			if now.Sub(d.since) < lateGoodbye {
				continue
			}
			c.blame(d.rank, fmt.Errorf("has left without ever making the communicator: %w", ErrClosed))
			return
		}
	}
	told := false
	r.stuck(func(s *submodules.Step, peer levels.Rank) {
		for _, d := range c.gone {
			if !told && d.rank == peer && (d.fromAll || int32(r.seq-d.seq) < 0) {
				told = true
				c.blame(peer, fmt.Errorf("has left and is waited for in call %d, %s: %w", r.seq, r.prog.Label(s), ErrClosed))
			}
		}
	})
}

// late tells whether a run is beyond the limit.
func (c *Comm) late(seq uint32) bool { return c.limit != nil && int32(seq-c.limit.seq) >= 0 }

// stopped tells whether the run must not go on: nothing of it is executed, and
// nothing written into its memory.
func (r *Run) stopped() bool { return r.comm.broken != nil || r.comm.late(r.seq) }

// restrict sets the limit, because of a rank of the world; runs beyond it stop. A rank
// that hasn't made the communicator yet stops them when it has: before it has heard of
// the departure itself, it would write to ranks whose runs have ended because of that.
func (e *Endpoint) restrict(f failure, members rankSet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if members != nil && !members.has(int32(e.rank)) {
		return
	}
	c := e.comm(f.comm.id)
	if c.local == nil {
		f.comm = nil
		c.foretold = append(c.foretold, f)
		return
	}
	c.restrict(f.peer, f.seq, f.err)
}

func (c *Comm) restrict(by levels.Rank, seq uint32, err error) {
	e := c.e
	if c.broken != nil || !c.member(by) || c.late(seq) {
		return
	}
	c.limit = &limit{seq, c.failure(by, err)}
	e.flight.Break(uint64(c.id), int32(by), c.limit.err)
	kept := c.early[:0]
	for _, m := range c.early {
		if c.late(m.Seq) {
			c.drop(&m)
			continue
		}
		kept = append(kept, m)
	}
	clear(c.early[len(kept):])
	c.early = kept
}

// endLate ends the runs beyond the limit, one after the other, once those before it
// have ended here: peers may read what these have exposed, and can't tell it from
// what those have.
func (c *Comm) endLate() {
	e := c.e
	var last *Run
	for _, r := range e.runs {
		if r.comm == c {
			if !c.late(r.seq) {
				return
			}
			last = r
		}
	}
	if last == nil {
		return
	}
	beyond := wire.Scope{Comm: c.id, Seq: c.limit.seq, Later: true}
	e.memory.Leave(c.id)
	e.puts.forget(beyond)
	e.link.Forget(beyond, e.ears())
	last.finish(c.limit.err) // and so the next
	e.sleeper.Wake()
}

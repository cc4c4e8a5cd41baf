package executor

import (
	"fmt"
	"maps"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
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

// abandon ends the transfers that a rank which has left will not answer.
func (c *Comm) abandon(d departure) {
	lost := func(t *Transfer) bool {
		if t.peer != d.rank {
			return false
		}
		c.endTransfer(t, c.failure(d.rank, ErrClosed))
		return true
	}
	maps.DeleteFunc(c.sends, func(_ ticket, t *Transfer) bool { return lost(t) })
	c.recvs.drop(lost)
}

// retire forgets a communicator that this rank and all others have left. Nothing comes
// for it any more but what this rank has sent to itself.
func (c *Comm) retire() {
	if c.left && c.id != 0 && c.away.count()+1 == len(c.ranks) && !c.busy() {
		delete(c.e.comms, c.id)
	}
}

// busy tells whether a run or a transfer is on its way.
func (c *Comm) busy() bool {
	return len(c.runs) > 0 || c.mail.open() || c.e.puts.some(c)
}

func (c *Comm) endTransfer(t *Transfer, err error) {
	if t != nil {
		c.e.transfers--
		t.close(err)
	}
}

// endTransfers ends all of them when the communicator breaks.
func (c *Comm) endTransfers(err error) {
	for _, t := range c.sends {
		c.endTransfer(t, err)
	}
	for _, t := range c.given {
		c.endTransfer(t, err)
	}
	for t := range c.recvs.all() {
		c.endTransfer(*t, err)
	}
	c.sends, c.given = nil, nil
	c.recvs.clear()
}

// forget makes the puts of what has failed nobody's, and ends the transfers among
// them: no list has those whose bytes are on their way.
func (p *puts) forget(s wire.Scope) {
	for i, by := range p.all {
		if by.within(s) {
			if t := by.transfer; t != nil {
				t.comm.endTransfer(t, t.comm.broken)
			}
			p.all[i] = putter{}
		}
	}
}

// drop lets go of a message that was kept.
func (c *Comm) drop(m *earlyMessage) {
	c.e.waste(m.from, m.Kind, len(c.e.store.get(m.block)))
	c.e.store.drop(m.block)
}

// dropEarly lets go of the messages that nobody will take any more.
func (c *Comm) dropEarly() {
	for i := range c.early {
		c.drop(&c.early[i])
	}
	c.early = nil
	for m := range c.came.all() {
		c.drop(m)
	}
	c.came.clear()
}

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

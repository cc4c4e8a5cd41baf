package executor

import (
	"fmt"
	"maps"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// completeBye notes one half of a goodbye and reports whether the other one has come.
func (c *Comm) completeBye(from levels.Rank, half byeHalf) bool {
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
	c.noteDeparture(d)
	if c.id != 0 {
		return
	}
	d.fromAll, d.broken, d.since = true, false, time.Now()
	for _, other := range e.comms {
		if other != c {
			other.noteDeparture(d)
		}
	}
}

// noteDeparture notes that a rank has left, if it is a member; who is, is known only when
// this rank has made the communicator.
func (c *Comm) noteDeparture(d departure) {
	if c.local == nil && d.fromAll || c.local != nil && !c.isMember(d.rank) {
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
			c.failIfLeft(r)
		}
		c.endAbandoned(d)
	}
	c.markAway(d.rank)
	c.endForsaken()
	if c.next != nil {
		c.next.blameStranded(d)
	}
}

// blameStranded fails a communicator that another one has shrunk to, because a rank has left that one
// before it knew: it never makes this one.
func (c *Comm) blameStranded(d departure) {
	if !d.onward && !d.fromAll && c.broken == nil && c.isPresent(d.rank) {
		c.blameRank(d.rank, fmt.Errorf("left while the others agreed to go on with it: %w", ErrClosed))
	}
}

// noteHeldDepartures counts the goodbyes that came just before the communicator broke.
func (c *Comm) noteHeldDepartures() {
	held := c.held
	c.held = nil
	for _, d := range held {
		c.noteDeparture(d)
	}
}

// markAway notes that a rank of the world has left, or died.
func (c *Comm) markAway(rank levels.Rank) {
	if c.isMember(rank) {
		c.away.set(c.local[rank])
		c.forgetIfLeft()
	}
}

// failIfLeft fails a run in which a rank that has left will never take part.
func (c *Comm) failIfLeft(r *Run) {
	for _, d := range c.gone {
		if r.comm == c && !d.fromAll && int32(r.seq-d.seq) >= 0 {
			err := fmt.Errorf("left before call %d: %w", r.seq, ErrClosed)
			c.e.failing = append(c.e.failing, failure{comm: c, peer: d.rank, err: err, seq: d.seq, later: true})
			return
		}
	}
}

// endAbandoned ends the transfers that a rank which has left will not answer.
func (c *Comm) endAbandoned(d departure) {
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

// endForsaken ends the receives from any rank once all other ranks have left.
func (c *Comm) endForsaken() {
	if c.wild.n == 0 || c.broken != nil || c.whyForsaken() == nil {
		return
	}
	for t := range c.wild.all() {
		c.endTransfer(*t, c.whyForsaken())
	}
	c.wild.clear()
}

// whyForsaken is an error if there were other ranks and all have left.
func (c *Comm) whyForsaken() error {
	if n := len(c.ranks); n > 1 && c.away.count()+1 == n {
		return fmt.Errorf("all other ranks have left: %w", ErrClosed)
	}
	return nil
}

// forgetIfLeft forgets a communicator that this rank and all others have left, unless it is
// kept. Nothing comes for it any more except what this rank has sent to itself.
func (c *Comm) forgetIfLeft() {
	if c.left && c.id != 0 && c.away.count()+1 == len(c.ranks) && !c.isBusy() && !c.e.world.isKept(c.id) {
		delete(c.e.comms, c.id)
	}
}

// isBusy reports whether a run or a transfer is on its way.
func (c *Comm) isBusy() bool {
	return len(c.runs) > 0 || c.mail.hasOpen() || c.e.puts.hasAny(c)
}

// endTransfer ends a transfer that is in no list any more; nil is none.
func (c *Comm) endTransfer(t *Transfer, err error) {
	if t != nil {
		c.e.transfers--
		if t.place > 0 {
			c.e.flight.EndTransfer(t.place)
		}
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
	for t := range c.wild.all() {
		c.endTransfer(*t, err)
	}
	c.sends, c.given = nil, nil
	c.recvs.clear()
	c.wild.clear()
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

// dropKept lets go of a message that was kept.
func (c *Comm) dropKept(m *earlyMessage) {
	c.e.consumeUnwanted(m.from, m.Kind, len(c.e.store.get(m.block)))
	c.e.store.drop(m.block)
}

// dropEarly lets go of the messages that nobody will take any more.
func (c *Comm) dropEarly() {
	for i := range c.early {
		c.dropKept(&c.early[i])
	}
	c.early = nil
	for m := range c.came.all() {
		c.dropKept(&m.earlyMessage)
	}
	c.came.clear()
}

// limitRuns sets the limit of a communicator, because of a rank of the world. A rank
// that hasn't made the communicator yet sets it once it has. Until it hears of the
// departure itself, it would write to ranks whose runs have ended.
func (e *Endpoint) limitRuns(f failure, members rankSet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if members != nil && !members.has(int32(e.rank)) {
		return
	}
	c := e.ensureComm(f.comm.id)
	if c.local == nil {
		f.comm = nil
		c.foretold = append(c.foretold, f)
		return
	}
	c.limitRuns(f.peer, f.seq, f.err)
}

// limitRuns sets the limit: runs from seq on stop, because of a rank of the world.
func (c *Comm) limitRuns(by levels.Rank, seq uint32, err error) {
	e := c.e
	if c.broken != nil || !c.isMember(by) || c.isLate(seq) {
		return
	}
	c.limit = &limit{seq, c.failure(by, err)}
	e.world.blame(by, err)
	e.flight.Break(uint64(c.id), int32(by), c.limit.err)
	kept := c.early[:0]
	for _, m := range c.early {
		if c.isLate(m.Seq) {
			c.dropKept(&m)
			continue
		}
		kept = append(kept, m)
	}
	clear(c.early[len(kept):])
	c.early = kept
}

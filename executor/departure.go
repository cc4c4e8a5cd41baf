package executor

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// completeBye notes one half of a goodbye and reports whether the other one has come.
func (m *membership) completeBye(from levels.Rank, half byeHalf) bool {
	if m.byeHalves[from] == byLink+byControl-half {
		delete(m.byeHalves, from)
		return true
	}
	if m.byeHalves == nil {
		m.byeHalves = map[levels.Rank]byeHalf{}
	}
	m.byeHalves[from] = half
	return false
}

// hearBye takes a goodbye. On the communicator of all ranks it counts for all communicators of the
// rank: some of them it may never have made, and then will not say goodbye there.
func (t commTable) hearBye(c *Comm, d departure) {
	c.noteDeparture(d)
	if c.id != 0 {
		return
	}
	for _, other := range t {
		if other != c {
			other.noteDeparture(other.departureFromAll(d.rank))
		}
	}
}

// departureFromAll is that of a rank that has closed the communicator of all ranks, for any other
// communicator: it goes on after none of them.
func (c *Comm) departureFromAll(rank levels.Rank) departure {
	return departure{rank: rank, fromAll: true, since: c.e.world.config.stallTime(time.Now())}
}

// hasLeftHere reports whether this rank has left all communicators and all others live in this process: nobody asks any more
// who has left before. Thousands of goroutine ranks need not keep it.
func (c *Comm) hasLeftHere() bool { return c.id == 0 && c.hasLeft && c.e.world.control == nil }

// noteDeparture notes that a rank has left, if it is a member. The members are known once this rank
// has made the communicator.
func (c *Comm) noteDeparture(d departure) {
	if c.local == nil && d.fromAll || c.local != nil && !c.isMember(d.rank) {
		return
	}
	if c.local == nil {
		c.departures = append(c.departures, d)
		return
	}
	if c.broken == nil && (d.broken || c.pendingCause.err != nil) {
		c.heldDepartures = append(c.heldDepartures, d)
		return
	}
	if !c.hasLeftHere() {
		c.departures = append(c.departures, d)
	}
	if c.broken == nil { // else the break ends its runs and transfers
		for _, r := range c.e.runs {
			c.failIfLeft(r, d)
		}
		if c.hasOpen() {
			c.endTransfersWith(d.rank, c.failure(d.rank, errHasClosed))
		}
	}
	c.markAway(d.rank)
	if c.anyRecvs.n > 0 && c.broken == nil {
		if err := c.whyForsaken(); err != nil {
			c.endAnyRecvs(err)
		}
	}
	if c.successor != nil {
		c.successor.blameStranded(d)
	}
}

// blameStranded fails a communicator made by Shrink after the departure of one of its members from
// the old one. This member left before it knew the decision, and never makes the new one.
func (c *Comm) blameStranded(d departure) {
	if !d.onward && !d.fromAll && c.broken == nil && c.isPresent(d.rank) {
		c.blameRank(d.rank, closedError("has closed while the others agreed to go on with it"))
	}
}

// noteHeldDepartures counts the goodbyes heard just before the communicator broke.
func (c *Comm) noteHeldDepartures() {
	held := c.heldDepartures
	c.heldDepartures = nil
	for _, d := range held {
		c.noteDeparture(d)
	}
}

// markAway notes the departure or death of a rank of the world.
func (c *Comm) markAway(rank levels.Rank) {
	if c.isMember(rank) {
		c.departed.set(c.local[rank])
		c.forgetIfLeft()
	}
}

// outsiders lists the members out of any successor, as ranks of the world. The lock is held.
func (m *membership) outsiders() []levels.Rank {
	all := slices.Clone(m.abstainers)
	for _, list := range [][]departure{m.departures, m.heldDepartures} {
		for _, d := range list {
			if !d.onward {
				all = append(all, d.rank)
			}
		}
	}
	return all
}

// failIfLeft fails a run that one of some departed ranks will never start.
func (c *Comm) failIfLeft(r *Run, gone ...departure) {
	for _, d := range gone {
		if r.comm == c && !d.fromAll && int32(r.seq-d.seq) >= 0 {
			err := closedError("has closed, it won't come to %s #%d", r.b.Request, r.seq)
			c.e.failing = append(c.e.failing, failure{comm: c, peer: d.rank, err: err, seq: d.seq, later: true})
			return
		}
	}
}

// endTransfersWith ends the transfers with a rank of the world.
func (m *mail) endTransfersWith(rank levels.Rank, err error) {
	lost := func(t *Transfer, name func(*Transfer) string) bool {
		if t.peer != rank {
			return false
		}
		t.end(fmt.Errorf("%s: %w", name(t), err))
		return true
	}
	asSend := func(t *Transfer) string { return t.name(sendWay) }
	maps.DeleteFunc(m.sends, func(_ ticket, t *Transfer) bool { return lost(t, asSend) })
	m.recvs.drop(func(t *Transfer) bool { return lost(t, (*Transfer).unmatched) })
}

// whyForsaken returns an error if there were other ranks and all have left.
func (m *membership) whyForsaken() error {
	if n := len(m.ranks); n > 1 && m.departed.count()+1 == n {
		return fmt.Errorf("all other ranks have left: %w", ErrClosed)
	}
	return nil
}

// forgetIfLeft forgets a communicator left by this rank and all others, unless it is retained.
// Nothing more comes for it except this rank's messages to itself.
func (c *Comm) forgetIfLeft() {
	if c.hasLeft && c.id != 0 && c.departed.count()+1 == len(c.ranks) && !c.isBusy() && !c.e.world.isRetained(c.id) {
		delete(c.e.comms, c.id)
		c.e.voter.ForgetAll(c.id)
		for _, other := range c.e.comms {
			if other.successor == c {
				other.successor = nil // no departure is news for it any more
			}
		}
	}
}

// describeOpen names a call on its way, and says how many more there are. The lock is held.
func (c *Comm) describeOpen() string {
	var open []string
	for _, r := range c.runs {
		open = append(open, fmt.Sprintf("%s #%d", r.b.Request, r.seq))
	}
	commTable{c.id: c}.eachTransfer(&c.e.puts, func(t *Transfer, way string, _ bool) {
		if t.comm == c {
			open = append(open, t.name(way))
		}
	})
	slices.Sort(open)
	switch n := len(open); n {
	case 0:
		return "a call"
	case 1:
		return open[0]
	default:
		return fmt.Sprintf("%s and %d more", open[0], n-1)
	}
}

// isBusy reports whether a run or a transfer is on its way.
func (c *Comm) isBusy() bool {
	return len(c.runs) > 0 || c.mail.hasOpen() || c.e.puts.hasAny(c)
}

// end ends a transfer in no list; nil is none.
func (t *Transfer) end(err error) {
	if t != nil {
		e := t.comm.e
		e.transfers--
		if t.place > 0 {
			e.flight.EndTransfer(t.place)
		}
		t.close(err)
	}
}

// endTransfers ends all transfers when the communicator breaks.
func (m *mail) endTransfers(err error) {
	for _, t := range m.sends {
		t.end(err)
	}
	for _, t := range m.movingRecvs {
		t.end(err)
	}
	for t := range m.recvs.all() {
		(*t).end(err)
	}
	m.sends, m.movingRecvs = nil, nil
	m.recvs.clear()
	m.endAnyRecvs(err)
}

// endAnyRecvs ends the receives from any rank.
func (m *mail) endAnyRecvs(err error) {
	for t := range m.anyRecvs.all() {
		(*t).end(err)
	}
	m.anyRecvs.clear()
}

// forget takes failed puts from their owners, and ends the transfers among them: a transfer with
// its bytes on their way is in no other list.
func (p *puts) forget(s wire.Scope) {
	for i, by := range p.all {
		if by.within(s) {
			if t := by.transfer; t != nil {
				t.end(t.comm.broken)
			}
			p.all[i] = putOwner{}
		}
	}
}

// dropMessage lets go of a kept message.
func (t *traffic) dropMessage(m *earlyMessage) {
	t.consumeUnwanted(m.from, m.Kind, len(t.store.get(m.block)))
	t.store.drop(m.block)
}

// dropEarly lets go of the early messages; nobody will take them any more.
func (c *Comm) dropEarly() {
	for i := range c.earlyMessages {
		c.e.dropMessage(&c.earlyMessages[i])
	}
	c.earlyMessages = nil
	for m := range c.unclaimed.all() {
		c.e.dropMessage(&m.earlyMessage)
	}
	c.unclaimed.clear()
}

// limitRuns sets the limit of a communicator, because of a rank of the world. If this rank hasn't
// made the communicator yet, the limit is kept until then. Without it this rank would write to
// ranks with their runs ended, until it hears of the departure itself.
func (e *Endpoint) limitRuns(f failure, members rankSet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if members != nil && !members.has(int32(e.rank)) {
		return
	}
	c := e.ensureComm(f.comm.id)
	if c.local == nil {
		f.comm = nil
		c.earlyFailures = append(c.earlyFailures, f)
		return
	}
	c.limitRuns(f.peer, f.seq, f.err)
}

// limitRuns sets the limit because of a rank of the world: runs from seq on stop.
func (c *Comm) limitRuns(by levels.Rank, seq uint32, err error) {
	e := c.e
	if c.broken != nil || !c.isMember(by) || c.isBeyondLimit(seq) {
		return
	}
	c.limit = &limit{seq, c.failure(by, err)}
	e.world.blame(by, err)
	e.flight.Break(uint64(c.id), int32(by), c.limit.err)
	c.earlyMessages = slices.DeleteFunc(c.earlyMessages, func(m earlyMessage) bool {
		beyond := c.isBeyondLimit(m.Seq)
		if beyond {
			c.e.dropMessage(&m)
		}
		return beyond
	})
}

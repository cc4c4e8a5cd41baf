package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/executor/flow"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// A link between two nodes may break while both ranks live: a connection is reset, a cable is out
// for some time. Nobody knows then how much has arrived. Bytes of a payload taken by the system
// belong to the program again, so they can't be sent once more. The two ranks break all
// communicators they share and begin anew: a fresh connection, fresh budgets, no earlier message.
// Nobody is lost, so [Comm.Shrink] goes on with all. Links are numbered. Each rank renews a number
// once, no matter if both ends notice the break.
//
// In a whole communicator no message is lost or comes out of order: a rank renewing a link has
// broken all communicators on the old one, and told so. Old connections are closed, and none is
// taken for a new link.

// silentTime is how long a rank may be out of reach after its connection broke and still count as
// living: as long as the control plane waits for a silent host. knockPause is the time between two
// attempts.
const (
	silentTime = 8 * time.Second
	knockPause = 100 * time.Millisecond
)

// clearUp finds out whether a suspect lives, and then renews the link to it; else the rank is lost.
func (e *Endpoint) clearUp(s suspect) {
	job := e.world.control.job
	isClear := func() bool { return !e.isUnclear(s) }
	for end := time.Now().Add(silentTime); !isClear(); e.pauseUnless(knockPause, isClear) {
		ctx, cancel := context.WithTimeout(context.Background(), silentTime)
		lives := job.Lives(ctx, s.rank)
		gone := !lives && job.Gone(ctx, s.rank)
		cancel()
		switch {
		case lives:
			e.RenewLink(s.rank, s.number+1, s.err)
			return
		case gone || time.Now().After(end):
			e.mu.Lock()
			e.lose(s)
			e.release()
			return
		}
	}
}

// isUnclear reports whether it still matters if a suspect lives.
func (e *Endpoint) isUnclear(s suspect) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	number, _ := e.linkNumber(s.rank)
	return number == s.number && !e.stopped && !e.isLost(s.rank) && e.ensureComm(0).isPresent(s.rank)
}

// lose counts a suspect as lost. The lock is held.
func (e *Endpoint) lose(s suspect) {
	e.comms.blameEverywhere(s.comm, s.rank, s.err)
	if s.comm == nil { // its link is reported once
		e.noteLost(s.rank, s.err)
	}
}

// linkNumber returns the number of the link to a rank; ok is false if it can't be renewed.
func (e *Endpoint) linkNumber(rank levels.Rank) (number uint32, ok bool) {
	if l, may := e.link.(wire.Renewer); may && e.world.control != nil {
		return l.Number(rank)
	}
	return 0, false
}

// RenewLink breaks the communicators shared with another, living rank. Then it makes the link to it
// anew and gives it a number. It does nothing if the link has this number already. Any goroutine
// may call it.
func (e *Endpoint) RenewLink(peer levels.Rank, number uint32, cause error) {
	err := fmt.Errorf("%w: it and rank %d of the world: %w", ErrLink, e.rank, cause)
	for told := false; ; told = true {
		e.mu.Lock()
		old, ok := e.linkNumber(peer)
		if !ok || e.stopped || int32(number-old) <= 0 {
			e.mu.Unlock()
			return
		}
		var shared []*Comm
		for _, c := range e.comms {
			if c.local != nil && c.broken == nil && (c.isPresent(peer) || e.puts.hasTowards(c, peer)) {
				shared = append(shared, c)
			}
		}
		if len(shared) == 0 {
			e.beginAnew(peer, number)
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		if !told { // before it hears how others go on
			e.world.control.tellRenewal(peer, number, cause)
		}
		for _, c := range shared {
			e.world.failComm(c, peer, err)
		}
	}
}

// beginAnew makes the link to a rank a new one. All communicators shared with the rank are broken.
// The lock is held.
func (e *Endpoint) beginAnew(peer levels.Rank, number uint32) {
	e.link.(wire.Renewer).Renew(peer, number, e.sink())
	p := e.peers.at(peer)
	p.Pair.Renew(e.comms.sumCharged(peer, &e.store))
	p.outTicket, p.inTicket, p.landing = 0, 0, landing{}
	if log := e.world.config.Log; log != nil {
		log.Warn("connection made anew", "rank", e.rank, "peer", peer, "number", number)
	}
}

// sumCharged returns the bytes kept here and charged by another rank: of communicators not made here
// yet, or left by the other one.
func (t commTable) sumCharged(peer levels.Rank, store *blocks) (bytes int64) {
	count := func(from levels.Rank, k wire.Kind, block int32) {
		if from == peer && (k == wire.Eager || k == wire.Tagged) {
			bytes += int64(len(store.get(block))) + flow.Overhead
		}
	}
	for _, c := range t {
		for i := range c.earlyMessages {
			count(c.earlyMessages[i].from, c.earlyMessages[i].Kind, c.earlyMessages[i].block)
		}
		for m := range c.unclaimed.all() {
			count(m.from, m.Kind, m.block)
		}
		for _, r := range c.runs {
			r.eachPayload(func(from levels.Rank, block int32) { count(from, wire.Eager, block) })
		}
	}
	return bytes
}

// tellRenewal tells a rank the new number of the link between it and this one.
func (c *control) tellRenewal(to levels.Rank, number uint32, cause error) {
	n := failureNote(c.me, cause)
	n.Seq = number
	c.retry(func() error { return c.send(to, linkControl, n) })
	c.job.LetOut()
}

package executor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// decideBreak settles why the communicator breaks, before the others are told. Whoever
// decides first must do all there is to do, and then closes settled and lets the communicator
// go; for others settled is closed when this returns. Otherwise a goroutine could close the
// communicator, so that both sides forget it, and the word of another one would make it anew.
func (c *Comm) decideBreak(by levels.Rank, err error) (f failure, way *news, must bool) {
	c.e.mu.Lock()
	switch {
	case c.local == nil: // it breaks when it is made
		f, way, must = failure{peer: by, err: err}, newNews(), true
	case c.broken != nil || !c.isMember(by):
	case c.news == nil:
		c.telling, c.news = failure{peer: by, err: err}, newNews()
		f, way, must = c.telling, c.news, true
	default:
		way = c.news
	}
	if must {
		c.e.world.keep(c.id)
	}
	c.e.mu.Unlock()
	if way != nil && !must {
		<-way.settled
	}
	return f, way, must
}

// breakUp breaks the communicator because of what happened on a rank of the world.
func (c *Comm) breakUp(by levels.Rank, err error) {
	if c.telling.err != nil && err != ErrClosed {
		by, err = c.telling.peer, c.telling.err
	}
	at := c.numberOf(by)
	if c.broken != nil || at < 0 {
		return
	}
	c.broken = err
	c.e.memory.Leave(c.id)
	if err == ErrClosed {
		return
	}
	c.cause = failure{peer: by, err: err}
	c.e.world.blame(by, err)
	defer c.noteHeldDepartures()
	if m, ok := errors.AsType[*MismatchError](err); ok { // by has only noticed
		c.broken = m
		if m.Comm != c.id {
			c.broken = fmt.Errorf("on communicator %v: %w", m.Comm, m)
		}
	} else if late, ok := errors.AsType[*LateError](err); by != c.e.rank || ok && late.blames(at) {
		c.broken = c.failure(by, err)
	}
	c.e.flight.Break(uint64(c.id), int32(by), c.broken)
	c.noteFailed(by, err)
	if log := c.e.world.config.Log; log != nil {
		log.Error("communicator broken", "rank", c.me, "comm", c.id, "err", c.broken)
	}
}

// markBroken breaks the communicator here; nothing is written into a peer's memory
// from then on. members are those of the world who are in it, nil for all.
func (e *Endpoint) markBroken(comm CommID, members rankSet, by levels.Rank, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch c := e.comms[comm]; {
	case members != nil && !members.has(int32(e.rank)):
	case c == nil || c.local == nil:
		c = e.ensureComm(comm)
		c.foretold = append(c.foretold, failure{peer: by, err: err})
		c.dropEarly()
	default:
		c.breakUp(by, err)
	}
}

// markBrokenWhere breaks those of the rank's communicators for which pick is true, and
// returns which were whole.
func (e *Endpoint) markBrokenWhere(by levels.Rank, err error, pick func(c *Comm) bool) (ids []CommID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, c := range e.comms {
		if c.local != nil && c.broken == nil && pick(c) {
			c.breakUp(by, err)
			ids = append(ids, id)
		}
	}
	return ids
}

// blameEverywhere breaks the communicators that a rank is in, or only one.
func (e *Endpoint) blameEverywhere(only *Comm, rank levels.Rank, err error) {
	for _, c := range e.comms {
		if (only == nil || only == c) && c.broken == nil && (c.isPresent(rank) || e.puts.hasTowards(c, rank)) {
			c.blameRank(rank, err)
		}
	}
}

// endBroken ends the runs of a broken communicator, once all ranks are marked.
func (e *Endpoint) endBroken(comm CommID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.comms[comm]
	if c == nil || c.local == nil {
		return
	}
	if c.broken == nil {
		c.endLate()
		return
	}
	e.puts.forget(wire.Scope{Comm: c.id})
	e.link.Forget(wire.Scope{Comm: c.id}, e.ears())
	for i := len(e.runs) - 1; i >= 0; i-- {
		if r := e.runs[i]; r.comm == c {
			r.finishCall(c.broken)
		}
	}
	c.dropEarly()
	c.endTransfers(c.broken)
	c.forgetIfLeft()
	e.sleeper.Wake()
}

// endLate ends the runs beyond the limit, one after the other, once those before it
// have ended here: peers may read what these have exposed, and can't tell it from
// what those have.
func (c *Comm) endLate() {
	e := c.e
	var last *Run
	for _, r := range e.runs {
		if r.comm == c {
			if !c.isLate(r.seq) {
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
	last.finishCall(c.limit.err) // and so the next
	e.sleeper.Wake()
}

// finishCall ends the call and wakes who waits for it.
func (r *Run) finishCall(err error) {
	e := r.comm.e
	if i := slices.Index(e.runs, r); i >= 0 {
		e.runs = slices.Delete(e.runs, i, i+1)
	}
	if i := slices.Index(r.comm.runs, r); i >= 0 {
		r.comm.runs = slices.Delete(r.comm.runs, i, i+1)
	}
	r.ready, r.fresh = r.ready[:0], 0
	r.comm.e.slots.giveBack(r)
	e.flight.End(uint64(r.comm.id), r.seq, r.pass, err != nil)
	if err != nil {
		r.discardArrived()
		e.forgetLandings(r)
	}
	r.endTiming(err)
	r.endSample(err)
	if hook := e.world.config.Hooks.Run; hook != nil && err == nil {
		hook(trace.Event{Rank: r.comm.me, Run: r.seq, Step: trace.WholeRun, Begin: r.startedAt, End: e.traceTime()})
	}
	r.close(err)
	if r.comm.limit != nil && r.comm.broken == nil {
		r.comm.endLate()
	}
}

// discardArrived lets go of what came for steps that will never run.
func (r *Run) discardArrived() {
	r.eachKept(func(from levels.Rank, block int32) {
		r.comm.e.consumeUnwanted(from, wire.Eager, len(r.comm.e.store.get(block)))
		r.comm.e.store.drop(block)
	})
}

// eachKept calls f for each payload that is kept for a step.
func (r *Run) eachKept(f func(from levels.Rank, block int32)) {
	for i := range r.steps {
		if s := &r.steps[i]; s.Kind == submodules.RecvStep && r.flags[i]&(arrived|ended) == arrived {
			f(r.peerOf(s), r.kept[i])
		}
	}
}

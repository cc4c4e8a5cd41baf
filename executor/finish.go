package executor

import (
	"slices"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
)

// endBeyondLimit ends the runs beyond the limit, one after the other, once those before it have ended
// here: a peer reading exposed memory can't tell a run beyond the limit from one before it.
func (c *Comm) endBeyondLimit() {
	e := c.e
	var last *Run
	for _, r := range e.runs {
		if r.comm == c {
			if !c.isBeyondLimit(r.seq) {
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
	e.link.Forget(beyond, e.sink())
	last.endSoon(c.limit.err) // and so the next
	e.sleeper.Wake()
}

// endSoon ends a call that doesn't go on, now or when its caller's operation has returned.
func (r *Run) endSoon(err error) {
	if r.active {
		r.due, r.overdue = err, true // its context has no more effect
		return
	}
	r.finishCall(err)
}

// finishCall ends the call and wakes its waiter.
func (r *Run) finishCall(err error) {
	e := r.comm.e
	if i := slices.Index(e.runs, r); i >= 0 {
		e.runs = slices.Delete(e.runs, i, i+1)
	}
	if i := slices.Index(r.comm.runs, r); i >= 0 {
		r.comm.runs = slices.Delete(r.comm.runs, i, i+1)
	}
	r.ready, r.freshSends, r.due = r.ready[:0], 0, nil
	r.giveShared()
	e.flight.End(uint64(r.comm.id), r.seq, r.pass, err != nil)
	if err != nil {
		r.dropPayloads()
		e.forgetLandings(r)
	}
	r.endTiming(err)
	if r.sampled && e.world.config.Hooks.Step == nil {
		r.begun = nil
	}
	r.sample.end(e.samples, &e.world.config, err)
	if hook := e.world.config.Hooks.Run; hook != nil && err == nil {
		hook(trace.Event{Rank: r.comm.me, Run: r.seq, Step: trace.WholeRun, Begin: r.startedAt, End: e.world.config.traceTime()})
	}
	r.close(err)
	if r.comm.limit != nil && r.comm.broken == nil {
		r.comm.endBeyondLimit()
	}
}

// dropPayloads drops the payloads for steps of an abandoned pass.
func (r *Run) dropPayloads() {
	r.eachPayload(func(from levels.Rank, block int32) {
		r.comm.e.consumeUnwanted(from, wire.Eager, len(r.comm.e.store.get(block)))
		r.comm.e.store.drop(block)
	})
}

// eachPayload calls f for each payload kept for a step.
func (r *Run) eachPayload(f func(from levels.Rank, block int32)) {
	for i := range r.steps {
		if s := &r.steps[i]; s.Kind == submodules.RecvStep && r.flags[i]&(arrived|ended) == arrived {
			f(r.peerOf(s), r.blockOf[i])
		}
	}
}

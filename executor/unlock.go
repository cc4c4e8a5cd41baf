package executor

import (
	"context"
	"errors"
	"time"
)

// cancelUnlessOver ends n because ctx is done, unless it has ended since, in that life. It breaks the communicator,
// except for a receive that may end alone: nobody else knows of it. After a deadline it returns at once: it finds
// out the late ranks first, for some seconds at most.
func (n *ending) cancelUnlessOver(ctx context.Context, life uint32) {
	e, cause := n.comm.e, context.Cause(ctx)
	e.mu.Lock()
	over := n.finished || n.life != life || n.overdue
	alone, late := n.endsAlone(cause), ctx.Err() == context.DeadlineExceeded && !e.stopped
	switch {
	case over:
	case alone && !(late && n.alone.isLongAwaited()) && n.alone.withdraw(cause):
		over = true
	case late:
		over = true
		n.beginLate(ctx, alone)
	}
	e.mu.Unlock()
	if !over {
		e.world.failComm(n.comm, e.rank, cause)
	}
}

// endsAlone reports whether it should end without the communicator, because of a context's cause. The limit of a
// call is for the communicator, unless a receive from any rank waits for nobody in particular.
func (n *ending) endsAlone(cause error) bool {
	_, limit := errors.AsType[limitError](cause)
	return n.alone != nil && (!limit || n.alone.peer == anyRank)
}

// isLongAwaited reports whether the program has waited for a message of one rank for longer than grace: worth a
// question to that rank. Shorter ones are a poll.
func (t *Transfer) isLongAwaited() bool {
	now := t.comm.e.world.config.stallTime(time.Now())
	return t.peer != anyRank && t.since != 0 && time.Duration(now-t.since) >= grace
}

// pause lets other goroutines have the lock between two pieces of work. It breaks the driver's
// communicator if the driver's context is done.
func (e *Endpoint) pause() {
	d, life := e.driver, uint32(0)
	if d.n != nil {
		life = d.n.life
	}
	e.mu.Unlock()
	if d.n != nil && d.ctx.Err() != nil {
		d.n.cancelUnlessOver(d.ctx, life)
	}
	e.mu.Lock()
}

// carryOut breaks the failing communicators and puts the open questions. The lock must not be held.
func (e *Endpoint) carryOut() {
	e.mu.Lock()
	list, questions := e.failing, e.asking
	e.failing, e.asking = nil, nil
	e.mu.Unlock()
	for _, q := range questions {
		e.world.deliverInquiry(q)
	}
	e.world.failAll(list, e.world.findCalls)
}

// failAll breaks communicators.
func (w *World) failAll(list []failure, find callFinder) {
	for _, f := range list {
		f.explainMismatch(find)
		if f.later {
			w.failLater(f)
			continue
		}
		w.failComm(f.comm, f.peer, f.err)
	}
}

// unlock also carries out the deferred work: nobody may drive after this.
func (e *Endpoint) unlock() {
	deferred := len(e.failing)+len(e.asking) > 0
	e.mu.Unlock()
	if deferred {
		e.carryOut()
	}
}

// dispatch flushes the link and wakes the driver after a start.
func (e *Endpoint) dispatch() {
	e.link.Flush(e.sink())
	if e.driving {
		e.sleeper.Wake()
	}
}

// releaseApart is release on the goroutine of control messages.
func (e *Endpoint) releaseApart() {
	e.dispatch()
	deferred := len(e.failing)+len(e.asking) > 0
	e.mu.Unlock()
	if deferred {
		e.world.runApart(e.carryOut)
	}
}

// releaseAlone is release on the caller's goroutine. It asks no other ranks first: a mismatch fails a call
// before the goroutine goes on.
func (e *Endpoint) releaseAlone() {
	e.dispatch()
	list := e.failing
	e.failing = nil
	e.mu.Unlock()
	e.world.failAll(list, e.world.recallCalls)
}

// release unlocks the engine after a start.
func (e *Endpoint) release() {
	e.dispatch()
	e.unlock()
}

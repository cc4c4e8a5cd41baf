package executor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// operation is a call's use of its caller's operation. It runs without the engine's lock, on a
// goroutine that lasts while steps wait for it: the function may block, panic, end its goroutine or
// use communicators, and all else on the rank goes on. The call itself ends after its operation has
// returned, as its buffers are in use. The engine's lock guards it.
type operation struct {
	queue   []dag.ID  // steps ready to be combined, the first one on its way if active
	active  bool      // the goroutine exists
	called  time.Time // since when the first step is on its way; zero: it isn't
	due     error     // the call's end, once the function has returned; nil: the call goes on
	failed  error     // what the function did in place of returning; nil: it returned
	element int64     // bytes of an element; the function gets whole ones
	bounces bounces   // copies of operands in other ranks' memory
	combine func()    // combineQueued; nil: the call has no caller's operation
}

// operationPiece is about how many bytes a caller's operation combines between two looks whether the
// call goes on: a thousand elements of a simple function take some microseconds, those of a slow one
// milliseconds.
const operationPiece = 32 << 10

// errExited is the failure of a step after its operation ended the goroutine.
var errExited = errors.New("the operation ended its goroutine, as runtime.Goexit and FailNow of a test do")

// reduceStep combines: by a kernel at once, by a caller's operation later.
func (r *Run) reduceStep(id dag.ID, s *submodules.Step) {
	r.comm.counters.Reduced += s.Len()
	if !r.b.User || s.Len() == 0 {
		r.doInChunks(id, s, r.b.Kernel)
		return
	}
	if r.queue = append(r.queue, id); r.active {
		return
	}
	r.active = true
	e := r.comm.e
	e.operating++
	e.background.Add(1)
	go r.combine() // World.Close waits for it
	e.awaitOperation()
}

// operationPatience is how long a driver waits for an operation at most before it looks at its links again: most take
// less, and two goroutines that work in turns are slower.
const operationPatience = 200 * time.Microsecond

// operationRounds is how often a driver with nothing else to do waits so, before it waits for all events alike.
const operationRounds = 50

// awaitOperation waits until an operation has ended, or for operationPatience. The lock is held, but not meanwhile.
func (e *Endpoint) awaitOperation() {
	switch {
	case e.impatience == nil:
		e.operated = make(chan struct{}, 1)
		e.impatience = time.AfterFunc(operationPatience, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.impatient = true; e.awaitsOperation {
				e.continueDriving()
			}
		})
	case e.impatient:
		e.impatience.Reset(operationPatience)
	}
	e.impatient, e.awaitsOperation = false, true
	e.mu.Unlock()
	<-e.operated
	e.mu.Lock()
}

// continueDriving lets the driver go on after a step of an operation, wherever it waits.
func (e *Endpoint) continueDriving() {
	switch {
	case e.awaitsOperation:
		e.awaitsOperation = false
		e.operated <- struct{}{}
	case e.driving:
		e.sleeper.Wake()
	}
}

// combineQueued does the steps that wait for the caller's operation, one after the other.
func (r *Run) combineQueued() {
	e := r.comm.e
	e.mu.Lock()
	returned := false
	defer func() { r.endCombining(returned) }() // also when the operation ends this goroutine, or a hook
	for len(r.queue) > 0 && r.due == nil && !r.isStopped() {
		id := r.queue[0]
		if r.begun != nil {
			r.begun[id] = e.world.config.traceTime()
		}
		if !r.combineStep(&r.steps[id]) {
			break
		}
		r.queue = slices.Delete(r.queue, 0, 1)
		if r.endStep(id); len(r.queue) > 0 {
			e.continueDriving()
		}
	}
	returned = true
}

// endCombining ends the goroutine of combineQueued, and the call if it has waited for that.
func (r *Run) endCombining(returned bool) {
	c, e := r.comm, r.comm.e
	defer e.background.Done()
	switch {
	case r.isStopped():
	case r.failed != nil:
		r.failStep(&r.steps[r.queue[0]], r.failed)
	case !returned:
		c.blameRank(e.rank, errHookExited)
	}
	r.queue, r.failed, r.active = r.queue[:0], nil, false
	e.operating--
	if r.due != nil {
		r.finishCall(r.due)
		c.forgetIfLeft()
	}
	e.continueDriving()
	e.handOver()
	e.unlock()
}

// combineStep combines a step piece by piece. It reports whether it has come to the step's end: else
// the call doesn't go on. The lock is held, but not while the operation runs.
func (r *Run) combineStep(s *submodules.Step) bool {
	r.called = time.Now()
	defer func() { r.called = time.Time{} }()
	for off := int64(0); off < s.A.Len; {
		n := r.nextPiece(s.A.Len - off)
		a, ok := r.ownOperand(0, s, s.A, off, n)
		if !ok {
			return false
		}
		b, ok := r.ownOperand(1, s, s.B, off, n)
		if !ok {
			return false
		}
		r.operate(r.span(s.Dst)[off:off+n], a, b)
		if d := r.comm.e.driver; r.comm.e.driving && d.n == &r.ending && d.ctx.Err() != nil {
			r.comm.e.pause() // the driver would see it too, but on a busy machine perhaps much later
		}
		if !r.areIntact(s) || r.failed != nil || r.due != nil || r.isStopped() {
			return false
		}
		off += n
	}
	return true
}

// nextPiece returns how many of the bytes left are combined next: whole elements.
func (o *operation) nextPiece(left int64) int64 {
	return max(o.element, min(left, operationPiece)/o.element*o.element)
}

// ownOperand returns a part of a span, the i-th of a step, for use without the lock. Memory of
// another rank of this process is copied: that rank may leave the call meanwhile, and its program use it again.
func (r *Run) ownOperand(i int, s *submodules.Step, from tasks.Span, off, n int64) (part []byte, ok bool) {
	var own []byte
	if from.Region == tasks.Peer {
		own = r.bounces.buffer(i, n, operationPiece)
	}
	switch part, err := r.operand(i, from, off, n, own); {
	case err == errUnread:
		return nil, false
	case err != nil:
		r.failStep(s, err)
		return nil, false
	case part != nil && own != nil && r.comm.e.world.endpoints[r.peerOf(&r.steps[from.Ref])] != nil:
		copy(own, part)
		return own, true
	default:
		return part, true
	}
}

// areIntact reports, after a read of a step's operands, whether their owners were still in the run. One that wasn't is a
// suspect: what was read may be something else, and the step never ends.
func (r *Run) areIntact(s *submodules.Step) bool {
	for _, operand := range [2]tasks.Span{s.A, s.B} {
		if peer, ok := r.isIntact(operand); !ok {
			r.failed = nil
			r.comm.e.addSuspect(r.comm, r.comm.ranks[peer], 0, errLeft)
			return false
		}
	}
	return true
}

// operate calls the caller's operation, without the lock. What it does in place of returning is
// r.failed; when it ends its goroutine, operate doesn't return either.
func (r *Run) operate(dst, a, b []byte) {
	e, failed := r.comm.e, errExited
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		r.failed = failed
	}()
	defer func() { // the text of a panic is the caller's too
		if p := recover(); p != nil {
			failed = fmt.Errorf("the operation panicked: %v", p)
		}
	}()
	r.b.Kernel(dst, a, b)
	failed = nil
}

// isOperating reports whether a step of the caller's operation has been on its way for a tick.
func (o *operation) isOperating(now time.Time) bool {
	return !o.called.IsZero() && now.Sub(o.called) >= wire.Tick
}

// operatingRanks returns the ranks of this process with a caller's operation on its way.
func (w *World) operatingRanks() (ranks []levels.Rank) {
	w.eachLocked(func(e *Endpoint) {
		if e.operating > 0 {
			ranks = append(ranks, e.rank)
		}
	})
	return ranks
}

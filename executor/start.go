package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Seq returns the number of the last start, among those on the communicator; ok is false if there
// was none.
func (r *Run) Seq() (seq uint32, ok bool) {
	r.comm.e.mu.Lock()
	defer r.comm.e.mu.Unlock()
	return r.seq, r.started
}

// Start begins the run and returns at once; the run goes on by itself. All ranks
// of the communicator must start the same runs in the same order. When ctx is
// cancelled before the run has ended, the communicator breaks on all ranks.
func (r *Run) Start(ctx context.Context) error {
	if _, err := r.startCall(ctx, false); err != nil {
		return err
	}
	r.comm.e.release()
	r.watchContext(ctx)
	return nil
}

// Do starts the run and waits for its end, without a goroutine in between.
func (r *Run) Do(ctx context.Context) error {
	through, err := r.startCall(ctx, true)
	if err != nil {
		return err
	}
	e := r.comm.e
	if through && !e.link.Flush(e.sink()) {
		e.unlock() // nobody waits, and nothing is left to be done
		return nil
	}
	e.dispatch()
	return r.settle(ctx, r.awaitInTime(ctx))
}

// startCall begins a call and leaves the engine's lock held, unless it returns an error. If the
// caller waits anyway, it may take its time. It reports whether the run went straight through.
func (r *Run) startCall(ctx context.Context, waits bool) (through bool, err error) {
	c, e := r.comm, r.comm.e
	e.mu.Lock()
	defer crash()
	if other := c.waitedFor; waits && other != nil && !other.finished && other != r { // perhaps still in its start
		e.unlock()
		return false, overlapError(r, other)
	}
	if c.isStarting { // and has released the lock for a moment
		e.unlock()
		return false, fmt.Errorf("start %s: another start on this communicator: %w", r.b.Request, ErrBusy)
	}
	if waits {
		c.waitedFor = r
	} else if c.waitedFor == r {
		c.waitedFor = nil
	}
	c.isStarting = true
	if err = c.admitCall(ctx); err == nil {
		err = r.whyNotStartable()
	}
	if err == nil {
		err = r.takeShared()
	}
	if err == nil && r.b.Scale != nil { // last: it changes input in place
		if err = r.scaleInput(); err != nil {
			r.giveShared()
		}
	}
	if err == nil {
		through = r.beginCall(ctx, waits)
	}
	c.isStarting = false
	if err != nil {
		e.unlock()
		return false, fmt.Errorf("start %s: %w", r.b.Request, err)
	}
	return through, nil
}

// overlapError is the error of a call that would overlap another one, of another goroutine: no order of theirs
// is the same on all ranks.
func overlapError(r, other *Run) error {
	if other.active {
		return fmt.Errorf("start %s: %s is under way on this communicator, in its operation; calls from there, and those of several goroutines, need another one, such as by Dup: %w",
			r.b.Request, other.b.Request, ErrBusy)
	}
	return fmt.Errorf("start %s: %s%s is under way on this communicator, and calls of several goroutines have no order; give each goroutine its own, such as by Dup: %w",
		r.b.Request, other.b.Request, otherCaller(), ErrBusy)
}

// whyNotStartable returns the reason why the run can't be started, nil if it can.
func (r *Run) whyNotStartable() error {
	if c := r.comm; c.isBeyondLimit(c.seq) {
		return fmt.Errorf("%w: %w", ErrBroken, c.limit.err)
	}
	if r.started && !r.finished {
		return fmt.Errorf("the run before has not ended: %w", ErrBusy)
	}
	if r.leastSend > 0 && r.b.Send == nil && (r.scaled == nil || r.b.Recv == nil) || r.leastRecv > 0 && r.b.Recv == nil {
		return errors.New("no buffers are bound")
	}
	return nil
}

// scaleInput applies b.Scale, without the engine's lock: other calls go on meanwhile. It returns why
// the call can't begin any more.
func (r *Run) scaleInput() error {
	src, dst := r.b.Send, r.scaled
	if dst == nil {
		dst = r.b.Recv
	}
	if src == nil {
		src = r.b.Recv
	}
	r.comm.e.mu.Unlock()
	n := min(len(dst), len(src))
	r.b.Scale(dst[:n], src[:n])
	r.comm.e.mu.Lock()
	if err := r.comm.whyUnusable(); err != nil {
		return err
	}
	return r.whyNotStartable()
}

// beginCall begins a call and reports whether it went straight through.
func (r *Run) beginCall(ctx context.Context, waits bool) bool {
	c, e := r.comm, r.comm.e
	if waits && r.straight != nil && c.seq%strayCalls == 0 && !e.driving {
		r.straight.node.PollNode(e.sink())
	}
	r.seq = c.seq
	c.seq++
	c.past[r.seq%pastRuns] = record{r.seq, r.digest, r.call}
	if !r.started {
		e.known.add(r.digest, r.call)
	}
	r.started = true
	e.flight.Begin(uint64(c.id), r.seq, r.b.Request, max(r.leastSend, r.leastRecv))
	c.counters.Runs++
	if r.weight = e.countCall(r.b.Tally, max(r.leastSend, r.leastRecv)); r.weight > 0 {
		r.timing.since = e.world.config.traceTime()
	}
	if e.samples.Takes(uint64(c.id), r.seq) {
		r.sample.begin(e.samples, r.seq, &e.world.config)
	}
	done := 0
	if waits && r.straight != nil && r.straight.isFree(c) {
		if done = r.runStraight(ctx); done == len(r.straight.steps) {
			r.finished, r.err = true, nil
			c.counters.Straight++
			r.endTiming(nil)
			r.sample.end(e.samples, &e.world.config, nil)
			e.flight.End(uint64(c.id), r.seq, 0, false)
			return true
		}
	}
	r.reopen()
	r.pass, r.parked, r.hasMoved, r.since, r.reportAfter = 0, false, true, time.Time{}, 0
	r.startedAt = 0
	clear(r.present)
	clear(r.notified)
	if e.world.config.Hooks.Run != nil {
		r.startedAt = e.world.config.traceTime()
	}
	e.runs.add(r)
	c.runs = append(c.runs, r)
	c.failIfLeft(r, c.departures...)
	r.beginPass()
	if done > 0 {
		r.takeOverStraight(done)
	}
	if r.sampled {
		r.begun = r.stamps
	}
	if r.stepsLeft > 0 && !r.finished && !e.driving {
		e.beginDriving(ctx, &r.ending)
		r.firstSteps()
		e.endDriving()
	}
	return false
}

// add puts a run behind those at least as urgent.
func (q *runQueue) add(r *Run) {
	at := len(*q)
	for at > 0 && (*q)[at-1].b.Urgency < r.b.Urgency {
		at--
	}
	*q = slices.Insert(*q, at, r)
}

// firstSteps does the first burst of steps.
func (r *Run) firstSteps() {
	e, returned := r.comm.e, false
	defer func() {
		if p := recover(); p != nil {
			endProcess(p)
		}
		if e.endDrivingIfExited(&returned) { // in a start, which doesn't return either
			r.comm.isStarting = false
			e.handOver()
			e.mu.Unlock()
		}
	}()
	r.advanceSteps()
	returned = true
}

package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/tasks"
)

// Seq returns the number of the last start, among those on the communicator; ok is
// false if there was none.
func (r *Run) Seq() (seq uint32, ok bool) {
	r.comm.e.enter()
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
	if through && !e.link.Flush(e.ears()) {
		e.unlock() // nobody waits, and nothing is left to be done
		return nil
	}
	e.dispatch()
	return r.settle(ctx, r.awaitInTime(ctx))
}

// startCall begins a call and leaves the engine's lock held, unless it returns an
// error. If the caller waits anyway, it may take its time. It reports whether the run
// went straight through.
func (r *Run) startCall(ctx context.Context, waits bool) (through bool, err error) {
	c, e := r.comm, r.comm.e
	e.enter()
	defer crash()
	if c.starting { // and has let go of the lock for a moment
		e.unlock()
		return false, fmt.Errorf("start %s: another start on this communicator: %w", r.b.Request, ErrBusy)
	}
	c.starting = true
	if err = c.admitCall(ctx); err == nil {
		err = r.whyNotStartable()
	}
	if err == nil {
		through = r.beginCall(ctx, waits)
	}
	c.starting = false
	if err != nil {
		e.unlock()
		return false, fmt.Errorf("start %s: %w", r.b.Request, err)
	}
	return through, nil
}

// whyNotStartable returns why the run can't be started, nil if it can.
func (r *Run) whyNotStartable() error {
	if c := r.comm; c.isLate(c.seq) {
		return fmt.Errorf("%w: %w", ErrBroken, c.limit.err)
	}
	if r.started && !r.finished {
		return fmt.Errorf("the run before has not ended: %w", ErrBusy)
	}
	if send, recv := r.neededBuffers(); send > 0 && r.b.Send == nil || recv > 0 && r.b.Recv == nil {
		return errors.New("no buffers are bound")
	}
	return nil
}

// beginCall begins a call and reports whether it went straight through.
func (r *Run) beginCall(ctx context.Context, waits bool) bool {
	c, e := r.comm, r.comm.e
	if waits && r.straight != nil && c.seq%strayCalls == 0 && !e.driving {
		r.straight.node.PollNode(e.ears())
	}
	r.seq = c.seq
	c.seq++
	c.past[r.seq%pastRuns] = record{r.seq, r.digest, r.call}
	if !r.started {
		e.known.add(r.digest, r.call)
	}
	r.started = true
	send, recv := r.neededBuffers()
	e.flight.Begin(uint64(c.id), r.seq, r.b.Request, max(send, recv))
	c.counters.Runs++
	r.count()
	if e.samples.Takes(uint64(c.id), r.seq) {
		r.beginSample()
	}
	done := 0
	if waits && r.straight != nil && r.straight.isFree(c) {
		if done = r.runStraight(ctx); done == len(r.straight.steps) {
			r.finished, r.err = true, nil
			c.counters.Straight++
			r.endTiming(nil)
			r.endSample(nil)
			e.flight.End(uint64(c.id), r.seq, 0, false)
			return true
		}
	}
	r.reopen()
	r.pass, r.parked, r.moved, r.since, r.reported = 0, false, true, time.Time{}, 0
	r.startedAt = 0
	clear(r.came)
	clear(r.told)
	if e.world.config.Hooks.Run != nil {
		r.startedAt = e.traceTime()
	}
	e.line(r)
	c.runs = append(c.runs, r)
	c.failIfLeft(r)
	r.memory[tasks.Slot] = r.comm.e.slots.take(r, r.slots)
	r.beginPass()
	if done > 0 {
		r.takeOverStraight(done)
	}
	if r.sampled {
		r.begun = r.stamps
	}
	if r.left > 0 && !r.finished && !e.driving {
		e.takeWheel(ctx, &r.ending)
		r.firstSteps()
		e.driving = false
	}
	return false
}

// line lets a run be served behind those that are as urgent.
func (e *Endpoint) line(r *Run) {
	at := len(e.runs)
	for at > 0 && e.runs[at-1].b.Urgency < r.b.Urgency {
		at--
	}
	e.runs = slices.Insert(e.runs, at, r)
}

// firstSteps does what can be done at once.
func (r *Run) firstSteps() {
	e, returned := r.comm.e, false
	defer func() {
		if p := recover(); p != nil {
			endProcess(p)
		}
		if e.dropWheelIfExited(&returned) { // in a start, which doesn't return either
			r.comm.starting = false
			e.handOver()
			e.mu.Unlock()
		}
	}()
	r.advanceSteps()
	returned = true
}

package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/wire"
)

// Wait blocks until it has ended and returns its error. When ctx is cancelled first, the
// communicator breaks on all ranks and the error is the context's cause. Waiting again returns the
// same error.
func (n *ending) Wait(ctx context.Context) error {
	n.comm.e.mu.Lock()
	if n.unwatch == nil {
		return n.awaitInTime(ctx)
	}
	return n.awaitEnd(ctx)
}

// awaitInTime is awaitEnd within [Config.CallTimeout].
func (n *ending) awaitInTime(ctx context.Context) error {
	w := n.comm.e.world
	if w.config.CallTimeout <= 0 || n.finished {
		return n.awaitEnd(ctx)
	}
	ctx, cancel := w.limitCall(ctx)
	defer cancel()
	return n.awaitEnd(ctx)
}

// limitCall returns a context with the time limit of a call.
func (w *World) limitCall(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := w.config.CallTimeout
	return context.WithTimeoutCause(ctx, limit, limitError(limit))
}

// limitError says that the limit of a call has passed: [Config.CallTimeout].
type limitError time.Duration

func (e limitError) Error() string {
	return fmt.Sprintf("the limit of %v for a call: %v", time.Duration(e), context.DeadlineExceeded)
}

func (e limitError) Unwrap() error { return context.DeadlineExceeded }

// awaitEnd is Wait with the lock held; it releases it.
func (n *ending) awaitEnd(ctx context.Context) error {
	e := n.comm.e
	for !n.finished {
		if e.driving {
			e.awaitDriver(ctx, n)
			continue
		}
		e.beginDriving(ctx, n)
		e.drive(n)
		e.endDriving()
	}
	n.wakeWaiter()
	e.handOver()
	err := n.err
	if err != nil {
		n.comm.heard = n.comm.broken != nil
	}
	e.unlock()
	return err
}

// beginDriving makes this goroutine the driver, for n; nil: in the background.
func (w *driverState) beginDriving(ctx context.Context, n *ending) {
	w.driving, w.driver = true, driver{ctx, n}
}

// endDriving ends driving. The lock is held.
func (w *driverState) endDriving() {
	if w.driving, w.backDrives = false, false; w.stopped {
		w.undriven.Broadcast()
	}
}

// Done reports whether it has ended: Wait would return at once.
func (n *ending) Done() bool {
	n.comm.e.mu.Lock()
	defer n.comm.e.mu.Unlock()
	return n.finished
}

// watchContext lets it go on by itself, and break when ctx is cancelled.
func (n *ending) watchContext(ctx context.Context) {
	e := n.comm.e
	e.mu.Lock()
	defer e.mu.Unlock()
	limit, cancel := e.world.config.CallTimeout > 0, context.CancelFunc(func() {})
	if !n.finished && (limit || ctx.Done() != nil) {
		if limit {
			ctx, cancel = e.world.limitCall(ctx)
		}
		life := n.life
		stop := context.AfterFunc(ctx, func() { n.cancelUnlessOver(ctx, life) })
		n.unwatch = func() bool {
			defer cancel()
			return stop()
		}
	}
	e.handOver()
}

// Watch lets the transfer go on without a goroutine in Wait.
func (t *Transfer) Watch(ctx context.Context) { t.watchContext(ctx) }

// awaitDriver waits while another goroutine drives, until n has ended or it is asked to drive. The
// lock is held before and after.
func (e *Endpoint) awaitDriver(ctx context.Context, n *ending) {
	e.waiters = append(e.waiters, n)
	life, done := n.life, ctx.Done()
	if n.overdue {
		done = nil
	}
	if e.backDrives {
		e.sleeper.Wake() // this goroutine is a better driver
	}
	e.mu.Unlock()
	select {
	case <-n.signal:
	case <-done:
		n.cancelUnlessOver(ctx, life)
	}
	e.mu.Lock()
	if i := slices.Index(e.waiters, n); i >= 0 {
		e.waiters = slices.Delete(e.waiters, i, i+1)
	}
}

// handOver finds a new driver if anything is on its way: one of the waiters, or the background.
func (e *Endpoint) handOver() {
	if e.driving || e.stopped || e.isIdle() {
		return
	}
	if len(e.waiters) > 0 {
		e.waiters[0].wake()
		return
	}
	if !e.hasBackDriver {
		e.hasBackDriver = true
		e.background.Add(1)
		if e.backDriver == nil {
			e.backDriver = e.driveInBackground // once: a method's value is an allocation
		}
		go e.backDriver() // World.Close waits for it
	}
}

// driveInBackground drives while something is on its way and nobody waits.
func (e *Endpoint) driveInBackground() {
	defer e.background.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() { // also when a hook ends this goroutine
		e.hasBackDriver = false
		e.handOver()
	}()
	if !e.driving {
		e.beginDriving(context.Background(), nil)
		e.backDrives = true
		e.drive(nil)
		e.endDriving()
	}
}

// shouldStop reports whether the driver should stop: its goal has ended, or, in the background,
// nothing is left or a better driver waits.
func (e *Endpoint) shouldStop(n *ending) bool {
	if n != nil {
		return n.finished
	}
	return e.stopped || e.isIdle() || len(e.waiters) > 0
}

// isIdle reports whether nothing is on its way, not even bytes left in a full link.
func (e *Endpoint) isIdle() bool {
	return len(e.runs)+e.transfers == 0 && !e.link.Flush(e.sink())
}

// mostInVain is the number of vain spins in a row after which the background driver sleeps at once:
// nobody waits, and the program computes on the same processor.
const mostInVain = 3

// drive makes progress for everything on its way on this rank. The lock is held before and after,
// but not all the time between. n is the driver's goal, nil in the background.
func (e *Endpoint) drive(n *ending) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			endProcess(p)
		}
		if e.endDrivingIfExited(&returned) && n != nil {
			e.handOver()
			e.mu.Unlock()
		}
	}()
	idle, inVain, spun, patient := 0, 0, time.Duration(0), 0
	for !e.shouldStop(n) {
		switch {
		case len(e.failing)+len(e.asking) > 0:
			e.mu.Unlock()
			e.carryOut()
			e.mu.Lock()
		case e.makeProgress():
			if idle > 0 {
				e.endIdle(e.flight, idle)
			}
			idle, inVain, spun, patient = 0, 0, 0, 0
			e.pause()
		case e.operating > 0 && patient < operationRounds:
			patient++ // no wait, so it isn't idle
			e.awaitOperation()
			e.pause()
		case n != nil && e.world.config.Progress != nil:
			idle++
			e.lendThread(idle)
		case idle < e.world.spin && (n != nil || inVain < mostInVain):
			idle++
			if idle == e.world.spin {
				inVain++
			}
			if idle == 1 || idle%readEvery == 0 {
				spun += e.tickIdle(e.flight, idle)
			}
			if spun > wire.Tick { // on a busy machine: looking around needs a sleep
				idle = max(idle, e.world.spin)
			}
			if e.driver.ctx.Err() != nil { // on a busy machine a spin may take seconds
				e.pause()
			}
			e.mu.Unlock()
			e.sleeper.Yield(idle)
			e.mu.Lock()
		case e.sleeper.Arm():
			e.sleep() // and again, without a spin, if it was for nothing
		default: // something has come meanwhile
			e.pause()
		}
	}
	returned = true
}

// errHookExited is the failure of a rank after a hook ended the goroutine that called it.
var errHookExited = errors.New("a hook ended the goroutine that drove the rank, as runtime.Goexit does")

// endDrivingIfExited is deferred by drivers; returned is set before the driver returns. If a hook
// has ended the goroutine instead, it stops driving, so that another one can. It reports
// whether it did; the lock is held.
func (e *Endpoint) endDrivingIfExited(returned *bool) (ended bool) {
	if *returned {
		return false
	}
	e.endDriving()
	for _, c := range e.comms {
		if c.local != nil {
			c.blameRank(e.rank, errHookExited)
		}
	}
	return true
}

// The clock is read every readEvery yields of a wait, and at both ends of each sampleEvery-th one:
// most waits are too short for two readings.
const (
	readEvery   = 16
	sampleEvery = 64
)

// tickIdle reads the clock in a wait, after so many yields; the first of them begins the wait.
// Times measured in some waits only count for all. It returns the time of the yields since the last
// reading, 0 if unknown.
func (w *driverState) tickIdle(ring *flight.Ring, idle int) (took time.Duration) {
	switch {
	case idle == 1:
		if w.waitCount++; w.waitCount%sampleEvery == 0 {
			ring.Tick()
		}
	case idle > readEvery:
		took = ring.Tick()
		w.addWaited(took)
	default:
		w.waitedSampled(ring.Tick())
	}
	return took
}

// endIdle ends a wait of so many yields.
func (w *driverState) endIdle(ring *flight.Ring, idle int) {
	switch sampled := w.waitCount%sampleEvery == 0; {
	case idle >= readEvery:
		w.addWaited(ring.Tick())
	case sampled:
		w.waitedSampled(ring.Tick())
	}
}

// addWaited counts time with a waiting goroutine, unless it waits for an operation of its own program; the background
// driver waits for nobody.
func (w *driverState) addWaited(d time.Duration) {
	if !w.backDrives && w.operating == 0 {
		w.waitTime += d
	}
}

// shortWait is the longest time of readEvery yields, unless the thread lost its processor in one of
// them.
const shortWait = 50 * time.Microsecond

// waitedSampled counts the beginning of a wait, if it is a measured one. A long one stands for
// itself only.
func (w *driverState) waitedSampled(d time.Duration) {
	switch {
	case w.waitCount%sampleEvery != 0:
	case d > shortWait:
		w.addWaited(d)
	default:
		w.addWaited(sampleEvery * d)
	}
}

// sleep parks the driver without the lock.
func (e *Endpoint) sleep() {
	done := e.driver.ctx.Done()
	if n := e.driver.n; n != nil && n.overdue {
		done = nil // it has had its effect
	}
	e.flight.Tick() // the next one measures this sleep alone
	operating := e.operating > 0
	e.mu.Unlock()
	ticked := e.sleeper.Park(done)
	e.mu.Lock()
	if slept := e.flight.Tick(); !operating {
		e.addWaited(slept)
	}
	e.pause()
	if ticked {
		e.lookAround()
	}
}

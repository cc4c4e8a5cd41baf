package executor

import (
	"context"
	"slices"
)

// Wait blocks until it has ended and returns its error. When ctx is cancelled
// first, the communicator breaks on all ranks and the error is the context's
// cause. Waiting again returns the same error.
func (n *ending) Wait(ctx context.Context) error {
	n.comm.e.enter()
	return n.awaitEnd(ctx)
}

// awaitEnd is Wait with the lock held, which it lets go of.
func (n *ending) awaitEnd(ctx context.Context) error {
	e := n.comm.e
	for !n.finished {
		if e.driving {
			e.awaitDriver(ctx, n)
			continue
		}
		e.takeWheel(ctx, n)
		e.drive(n)
		e.driving = false
	}
	n.tellWaiters()
	e.handOver()
	err := n.err
	e.unlock()
	return err
}

// takeWheel makes this goroutine the driver, for n; nil: in the background.
func (e *Endpoint) takeWheel(ctx context.Context, n *ending) {
	e.driving, e.driver = true, driver{ctx, n}
}

// watchContext lets it go on by itself, and break when ctx is cancelled.
func (n *ending) watchContext(ctx context.Context) {
	e := n.comm.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if !n.finished && ctx.Done() != nil {
		life := n.life
		n.unwatch = context.AfterFunc(ctx, func() { n.cancelUnlessOver(ctx, life) })
	}
	e.handOver()
}

// Watch lets the transfer go on without a goroutine in Wait.
func (t *Transfer) Watch(ctx context.Context) { t.watchContext(ctx) }

// awaitDriver waits while another goroutine drives, until n has ended or it is asked
// to drive. The lock is held before and after.
func (e *Endpoint) awaitDriver(ctx context.Context, n *ending) {
	e.waiters = append(e.waiters, n)
	life := n.life
	if e.backDrives {
		e.sleeper.Wake() // whoever waits is a better driver
	}
	e.mu.Unlock()
	select {
	case <-n.signal:
	case <-ctx.Done():
		n.cancelUnlessOver(ctx, life)
	}
	e.mu.Lock()
	if i := slices.Index(e.waiters, n); i >= 0 {
		e.waiters = slices.Delete(e.waiters, i, i+1)
	}
}

// handOver finds a new driver for what is on its way: one who waits, or the
// background.
func (e *Endpoint) handOver() {
	if e.driving || e.stopped || e.isIdle() {
		return
	}
	if len(e.waiters) > 0 {
		e.waiters[0].tell()
		return
	}
	if !e.inBack {
		e.inBack = true
		e.background.Add(1)
		go e.driveInBackground() // World.Close waits for it
	}
}

// driveInBackground drives while something is on its way and nobody waits.
func (e *Endpoint) driveInBackground() {
	defer e.background.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() { // also when an operation ends this goroutine
		e.inBack = false
		e.handOver()
	}()
	if !e.driving {
		e.takeWheel(context.Background(), nil)
		e.backDrives = true
		e.drive(nil)
		e.driving, e.backDrives = false, false
	}
}

// hasEnough reports whether the driver should stop: what it waits for has ended, or, in
// the background, there is nothing left or somebody better.
func (e *Endpoint) hasEnough(n *ending) bool {
	if n != nil {
		return n.finished
	}
	return e.stopped || e.isIdle() || len(e.waiters) > 0
}

// isIdle reports whether nothing is on its way, not even bytes that a link had no room
// for.
func (e *Endpoint) isIdle() bool {
	return len(e.runs)+e.transfers == 0 && !e.link.Flush(e.ears())
}

// drive makes progress for all that is on its way on this rank. The lock is held
// before and after, but not all the time between. n is what the driver waits for,
// nil in the background.
func (e *Endpoint) drive(n *ending) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			endProcess(p)
		}
		if e.dropWheelIfExited(&returned) && n != nil {
			e.handOver()
			e.mu.Unlock()
		}
	}()
	idle := 0
	for !e.hasEnough(n) {
		switch {
		case len(e.failing)+len(e.asking) > 0:
			e.mu.Unlock()
			e.carryOut()
			e.mu.Lock()
		case e.makeProgress():
			idle = 0
			e.pause()
		case idle < e.world.spin:
			idle++
			if idle%16 == 0 {
				e.flight.Tick()
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

// sleep parks the driver without the lock.
func (e *Endpoint) sleep() {
	done := e.driver.ctx.Done()
	e.mu.Unlock()
	ticked := e.sleeper.Park(done)
	e.mu.Lock()
	e.flight.Tick()
	e.pause()
	if ticked {
		e.lookAround()
	}
}

package executor

import (
	"slices"
)

// ending is the end of something that was started: a run or a transfer. Its
// fields are guarded by the engine's lock.
type ending struct {
	comm     *Comm
	finished bool
	err      error
	signal   chan struct{} // capacity 1: it has ended, or you are asked to drive
	unwatch  func() bool
	life     uint32 // how often it was reopened
	overdue  bool   // its deadline has passed, and the ranks are asked why
	// withdraw ends it alone, without breaking the communicator, and reports whether it could;
	// nil: that is never possible. The engine's lock is held.
	withdraw func(err error) bool
}

// newEnding returns an ending that is not finished.
func newEnding(c *Comm) ending { return ending{comm: c, signal: make(chan struct{}, 1)} }

// reopen makes it unfinished again.
func (n *ending) reopen() {
	n.finished, n.err, n.overdue = false, nil, false
	n.life++
	if len(n.signal) > 0 {
		<-n.signal
	}
}

// close ends it and tells one who waits.
func (n *ending) close(err error) {
	n.finished, n.err = true, err
	if n.unwatch != nil {
		n.unwatch()
		n.unwatch = nil
	}
	n.tellWaiters()
}

// tellWaiters wakes one goroutine that waits for n while another one drives. Usually
// there is none: the waiter itself drives.
func (n *ending) tellWaiters() {
	if slices.Contains(n.comm.e.waiters, n) {
		n.tell()
	}
}

// tell wakes the goroutine that waits for n, now or when it next does.
func (n *ending) tell() {
	select {
	case n.signal <- struct{}{}:
	default:
	}
}

// inBackground calls f on a goroutine of its own, which [World.Close] waits for; not at
// all if the world is being closed. The lock is held, but not by f.
func (e *Endpoint) inBackground(f func()) {
	if e.stopped {
		return
	}
	e.background.Add(1)
	go func() {
		defer e.background.Done()
		f()
	}()
}

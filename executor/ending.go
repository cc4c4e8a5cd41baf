package executor

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

// tell wakes the goroutine that waits for n, now or when it next does.
func (n *ending) tell() {
	select {
	case n.signal <- struct{}{}:
	default:
	}
}

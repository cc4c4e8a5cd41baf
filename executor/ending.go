package executor

// ending is the end of a run or a transfer. The engine's lock guards its fields.
type ending struct {
	comm     *Comm
	finished bool
	err      error
	signal   chan struct{} // capacity 1: it has ended, or its waiter is asked to drive
	unwatch  func() bool
	life     uint32    // times it was reopened
	overdue  bool      // its context is done, and has had its effect: it ends soon
	alone    *Transfer // the receive that this is the end of, if it may end alone; nil: it breaks the communicator
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

// wake wakes the goroutine waiting for n, now or at its next wait.
func (n *ending) wake() {
	select {
	case n.signal <- struct{}{}:
	default:
	}
}

package executor

import "slices"

// close ends it and tells a waiter.
func (n *ending) close(err error) {
	n.finished, n.err = true, err
	if n.unwatch != nil {
		n.unwatch()
		n.unwatch = nil
	}
	n.wakeWaiter()
}

// wakeWaiter wakes the goroutine waiting for n while another one drives. Usually there is none:
// the waiter itself drives.
func (n *ending) wakeWaiter() {
	if slices.Contains(n.comm.e.waiters, n) {
		n.wake()
	}
}

package executor

import "slices"

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

package executor

import (
	"fmt"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// dyingTime is how long a rank about to end its process may take until it fails on the others all
// the same: a panic's time to run deferred functions and to be printed.
const dyingTime = time.Second

// FailSoon ends a communicator, or with nil all communicators of a rank of this process, because of
// a panic about to end the process. The other processes are told at once, but count it only after
// this one has ended: a launcher kills the rest of a job after the first failure, and the panic
// must have been printed by then. If the process is alive after a second, the rank fails then, and
// after is called, on a goroutine of its own without a waiter.
func (w *World) FailSoon(c *Comm, by levels.Rank, err error, after func()) {
	w.blame(by, err)
	if w.control != nil {
		w.control.tellDying(by, err)
	}
	time.AfterFunc(dyingTime, func() {
		if c == nil {
			w.Fail(by, err)
		} else {
			w.failComm(c, by, err)
		}
		after()
	})
}

// tellDying tells all ranks why one is about to die.
func (c *control) tellDying(by levels.Rank, err error) {
	c.broadcast(dyingControl, failureNote(by, err))
	c.job.LetOut()
}

// keepLastWords keeps a rank's last words until it has died; nil: it lives on.
func (c *control) keepLastWords(by levels.Rank, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastWords[by] = err
}

// whyLost returns the reason for a rank's loss: its last words, else err.
func (c *control) whyLost(by levels.Rank, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.lastWords[by]; last != nil {
		return last
	}
	return err
}

// Panicked returns the failure of a rank whose goroutine panics with a value.
func Panicked(value any) error {
	return &toldError{fmt.Sprintf("panicked: %v", value), []error{ErrUnwound}}
}

// Exited returns the failure of a rank whose goroutine was ended.
func Exited() error {
	return &toldError{"ended its goroutine, as runtime.Goexit and FailNow of a test do", []error{ErrUnwound}}
}

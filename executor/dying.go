package executor

import (
	"fmt"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// dyingTime is how long a rank that is about to end its process may take until it fails
// on the others all the same. It is a panic's time to run what was deferred and to be
// printed.
const dyingTime = time.Second

// FailSoon ends a communicator, or with nil all that a rank of this process is in, because
// of what is about to end the process: a panic. The other processes are told at once, but
// count it only when this one has ended. A launcher kills what is left of a job whose first
// rank has failed; the panic must have been printed by then. If the process lives on for a
// second the rank fails then, and after is called, on a goroutine of its own that nobody
// waits for.
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

// hearDying keeps why a rank is about to die for when it has; nil: it lives on.
func (c *control) hearDying(by levels.Rank, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dying == nil {
		c.dying = map[levels.Rank]error{}
	}
	c.dying[by] = err
}

// whyLost returns why a rank was lost: what it said last, or what its loss looks like.
func (c *control) whyLost(by levels.Rank, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.dying[by]; last != nil {
		return last
	}
	return err
}

// Panicked is how a rank fails whose goroutine panics with a value.
func Panicked(value any) error {
	return &toldError{fmt.Sprintf("panicked: %v", value), []error{ErrUnwound}}
}

// Exited is how a rank fails whose goroutine was ended.
func Exited() error {
	return &toldError{"ended its goroutine, as runtime.Goexit and FailNow of a test do", []error{ErrUnwound}}
}

package planner

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"

	"github.com/tierflow/tierflow/executor"
)

// Close leaves the communicator. Closing the one of all ranks, or its successor, closes those
// made from it too. From then on calls of other ranks fail if they need this one.
// Closing again does nothing; it is an error, on all ranks, while a call is on
// its way. Processes wait for each other in Close, at most [Options.CloseTimeout].
//
// Deferred, it waits for nobody while a panic or runtime.Goexit unwinds the goroutine: the
// panic goes on, and is printed. The others hear of it when the process has ended, and
// say "rank 1 panicked: …", see [ErrUnwound]. If the process lives on, because the panic is
// recovered further up, they hear of it after a second.
func (c *Comm) Close() error {
	if p := recover(); p != nil { // Close is the deferred function itself
		c.closeUnwound(executor.Panicked(p))
		panic(p)
	}
	if err := unwinding(); err != nil {
		c.closeUnwound(err)
		return nil
	}
	return c.close()
}

// Revoke breaks the communicator on all ranks, as MPIX_Comm_revoke does: waiting calls, and
// later ones, return an error with the reason. It is for a rank that knows the others to
// wait in vain. Revoke itself waits for nobody. Nothing happens on a broken or closed
// communicator. Any goroutine may call it.
func (c *Comm) Revoke(reason error) error {
	if reason == nil {
		return errors.New("a communicator is revoked without a reason, which must not be nil")
	}
	if err := c.checkMade(); err != nil {
		return fmt.Errorf("revoke: %w", err)
	}
	c.comm.Revoke(reason)
	return nil
}

// Abort ends the job, as MPI_Abort does: the calls of all ranks on all communicators, waiting ones and later ones,
// return an error that wraps [ErrAborted] and has the reason. Package elastic doesn't go on after it, and the
// launcher starts nobody anew. It ends no process: a program ends by itself, and so it returns the error, for the
// program to return. Abort waits for no other program, and afterwards this rank's Close doesn't either. Any goroutine may
// call it.
//
//	if math.IsNaN(loss) {
//		return comm.Abort(errors.New("the loss is no number"))
//	}
func (c *Comm) Abort(reason error) error {
	if reason == nil {
		return errors.New("a job is aborted without a reason, which must not be nil")
	}
	if err := c.checkMade(); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	return c.world.Abort(c.worldRank(), reason)
}

// unwinding returns an error for a panic or runtime.Goexit that unwinds the goroutine of Close, called
// by a deferred function or deferred itself; nil: nothing does. The panic's value is not known here.
func unwinding() error {
	var pcs [4]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])]) // from the caller of Close on
	for range 2 {
		switch f, _ := frames.Next(); f.Function {
		case "runtime.gopanic":
			return executor.Panicked("its own output says why")
		case "runtime.Goexit":
			return executor.Exited()
		}
	}
	return nil
}

// closeUnwound closes the communicator of a rank about to end because of err. If the rank lives on,
// the communicator closes a little later.
func (c *Comm) closeUnwound(err error) {
	if c.checkMade() != nil {
		return
	}
	if c = c.newest(); !c.refuseCalls() {
		return
	}
	var left *executor.Comm // nil: all of the world
	if c.derived {
		left = c.comm
	}
	c.world.FailSoon(left, c.worldRank(), err, func() { _ = c.leave() })
}

// close is Close without a look for a panic.
func (c *Comm) close() error {
	if err := c.checkMade(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if !c.refuseCalls() {
		return nil
	}
	return c.leave()
}

// refuseCalls marks the communicator as closed for calls. It reports whether it was open.
func (c *Comm) refuseCalls() (was bool) {
	return c.store.close()
}

// leave leaves the communicator, and closes the world with its last one of all ranks.
func (c *Comm) leave() error {
	if c.derived {
		return c.comm.Close()
	}
	if _, late := errors.AsType[*LateError](c.comm.Err()); late { // it may never come
		c.world.HurryClose()
	}
	err := c.comm.Endpoint().Close()
	if c.world.open.Add(-1) == 0 {
		c.world.forget()
		files := errors.Join(c.world.Close(), c.world.calls.write())
		if _, wrong := errors.AsType[*fs.PathError](files); wrong {
			c.world.log.Warn("what the job was asked to keep can't be written", "err", files)
		}
		err = errors.Join(err, files, c.world.closeDoor())
		if c.world.quiet != nil {
			c.world.quiet()
		}
		if err == nil {
			c.world.whole.Store(true)
		}
		c.world.before.Wait()
	}
	return err
}

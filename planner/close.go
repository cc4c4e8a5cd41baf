package planner

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/tierflow/tierflow/executor"
)

// Close leaves the communicator, and with the one of all ranks, or what it has shrunk to, those that
// were made from it. Calls of the other ranks that would need this one fail from then
// on. Closing again does nothing; it is an error, on all ranks, while a call is on
// its way. Ranks that are processes wait for each other, for as long as
// [Options.CloseTimeout] says.
//
// Deferred, it waits for nobody while a panic or runtime.Goexit unwinds the goroutine: the
// panic goes on, and is printed. The others hear of it when the process has ended, and
// say "rank 1 panicked: …", see [ErrUnwound]. If the process lives on, because the panic is
// recovered further up, they hear of it after a second.
func (c *Comm) Close() error {
	if p := recover(); p != nil { // this is the deferred function itself
		c.closeUnwound(executor.Panicked(p))
		panic(p)
	}
	if err := unwinding(); err != nil {
		c.closeUnwound(err)
		return nil
	}
	return c.close()
}

// Revoke breaks the communicator on all ranks, as MPIX_Comm_revoke does: calls that wait, and
// calls made later, return an error with the reason. It is for a rank that knows that the others
// wait in vain, and doesn't wait for them. Nothing happens on a communicator that is broken or
// closed. Any goroutine may call it.
func (c *Comm) Revoke(reason error) error {
	if reason == nil {
		return errors.New("a communicator is revoked without a reason, which must not be nil")
	}
	if err := c.made(); err != nil {
		return fmt.Errorf("revoke: %w", err)
	}
	c.comm.Revoke(reason)
	return nil
}

// unwinding returns what unwinds the goroutine whose deferred function has called Close, or
// is Close; nil: nothing does. What a panic was recovered with is not known here.
func unwinding() error {
	var pcs [4]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])]) // from who called Close on
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

// closeUnwound closes the communicator of a rank that is about to end because of err. If it
// lives on, that is soon so.
func (c *Comm) closeUnwound(err error) {
	if c.made() != nil {
		return
	}
	if c = c.newest(); !c.refuseCalls() {
		return
	}
	if c.derived {
		c.world.FailSoon(c.comm, c.worldRank(), err, func() { _ = c.leave() })
	} else {
		c.world.FailSoon(nil, c.worldRank(), err, func() { _ = c.leave() })
	}
}

// close is Close of a goroutine that nothing unwinds.
func (c *Comm) close() error {
	if err := c.made(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if !c.refuseCalls() {
		return nil
	}
	return c.leave()
}

// refuseCalls lets calls find the communicator closed. It reports whether it was open.
func (c *Comm) refuseCalls() (was bool) {
	c.mu.Lock() // calls needn't wait for those of other ranks
	defer c.mu.Unlock()
	was = c.cache != nil
	c.cache, c.counts, c.spare = nil, nil, spare{}
	return was
}

// leave leaves the communicator, and closes the world with its last one of all ranks.
func (c *Comm) leave() error {
	if c.derived {
		return c.comm.Close()
	}
	err := c.comm.Endpoint().Close()
	if c.world.open.Add(-1) == 0 {
		c.world.forget()
		err = errors.Join(err, c.world.Close(), c.world.closeDoor(), c.world.calls.write())
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

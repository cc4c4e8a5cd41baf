package planner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/planner/internal/inside"
)

// Run calls f with a communicator, closes it and returns the first error. Without a topology it is this process's rank of
// the job that the process was started in, see [Join]. With one, such as 2x4, it makes goroutine ranks, see [Local], and calls f once per
// rank, each on a goroutine of its own. So a program runs as processes, and its test in one.
//
// When f fails or panics on one rank, the others' calls return a [PeerError] with the reason; so do
// calls waiting for a rank after f has returned there.
func Run(ctx context.Context, topology string, o *Options, f func(ctx context.Context, c *Comm) error) error {
	if topology != "" {
		comms, err := Local(topology, o)
		if err != nil {
			return err
		}
		return Each(ctx, comms, f)
	}
	if err := inside.CheckFunction(ctx, f == nil); err != nil {
		return err
	}
	c, err := Join(ctx, o)
	if err != nil {
		return err
	}
	return Each(ctx, []*Comm{c}, f)
}

// Each is [Run] on existing communicators. It closes them and their successors, even if it
// can't call f.
func Each(ctx context.Context, comms []*Comm, f func(ctx context.Context, c *Comm) error) error {
	if len(comms) == 0 {
		return errors.New("there are no communicators; give one for each rank")
	}
	err := inside.CheckFunction(ctx, f == nil)
	for i, c := range comms {
		if c.checkMade() != nil {
			err = errors.Join(err, fmt.Errorf("communicator %d of %d: %w", i, len(comms), errNoComm))
		} else if slices.Contains(comms[:i], c) {
			err = errors.Join(err, fmt.Errorf("communicator %d of %d is given twice", i, len(comms)))
		}
	}
	if err != nil { // the existing ranks end with it
		f = func(context.Context, *Comm) error { return err }
		comms = slices.DeleteFunc(slices.Clone(comms), func(c *Comm) bool { return c.checkMade() != nil })
	}
	var first atomic.Pointer[error]
	var all sync.WaitGroup
	for _, c := range comms {
		all.Go(func() {
			c.guard(ctx, f, func(err error) { first.CompareAndSwap(nil, &err) })
		})
	}
	all.Wait()
	if p := first.Load(); p != nil {
		return *p
	}
	return err
}

// guard calls f and closes the communicator. It reports an error before others
// can see its consequences. A panic is an error, and so is runtime.Goexit, as
// testing's FailNow calls it.
func (c *Comm) guard(ctx context.Context, f func(ctx context.Context, c *Comm) error, report func(error)) {
	err, told := fmt.Errorf("rank %d ended its goroutine", c.Rank()), executor.Exited()
	defer func() {
		if p := recover(); p != nil {
			err, told = fmt.Errorf("rank %d panicked: %v\n%s", c.Rank(), p, debug.Stack()), executor.Panicked(p)
		}
		if told == nil {
			told = err
		}
		if err != nil {
			report(err)
			c.world.Fail(c.worldRank(), told)
		}
		if err := c.newest().close(); err != nil {
			report(err)
		}
	}()
	c.comm.Endpoint().Adopt()
	err, told = f(ctx, c), nil
}

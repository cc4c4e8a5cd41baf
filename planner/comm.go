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
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/executor/tcp"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// The errors of this package's calls, see package executor.
var (
	ErrClosed    = executor.ErrClosed
	ErrBroken    = executor.ErrBroken
	ErrMismatch  = executor.ErrMismatch
	ErrBusy      = executor.ErrBusy
	ErrTruncated = executor.ErrTruncated
)

// Errors with details.
type (
	PeerError     = executor.PeerError
	MismatchError = executor.MismatchError
	StepError     = executor.StepError
)

// Comm is one rank's end of a communicator: the world's, or one that Split or Dup
// made. Calls that create collectives may be made by any goroutine. Collectives of one
// communicator, Split and Dup among them, are started one after the other, in the same
// order on all ranks; those of different communicators are independent.
type Comm struct {
	comm     *executor.Comm
	world    *world
	topology *levels.Topology
	policy
	memo    *memo
	derived bool // made by Split or Dup: the world is another Comm's to close

	mu    sync.Mutex
	cache map[tasks.Request]*Collective // of the one-shot calls; nil when closed
	kept  []tasks.Request               // its keys, the oldest first
	// counts is the last call that told counts, for the next one; nil: none, or in use.
	counts *countsCall
}

// countsCall is the call in which ranks tell each other their counts. A communicator keeps
// one for its next alltoallv.
type countsCall struct {
	col   *Collective
	table []int64 // a row for each rank: its bits, what it gives each rank, what it gets
}

// world counts the ranks of this process that have not closed yet.
type world struct {
	*executor.World
	open  atomic.Int32
	quiet func()   // ends dumps on SIGQUIT; nil without
	lent  sync.Map // unsafe.Pointer of what Alloc returned → func() that frees it
}

// Local makes a communicator of goroutine ranks, one Comm for each rank of the
// topology, which [levels.Parse] reads: 4x2 is four nodes of two ranks. Each Comm
// must be closed.
func Local(topology string, o *Options) ([]*Comm, error) {
	t, err := levels.Parse(topology)
	if err != nil {
		return nil, err
	}
	return LocalOn(t, o)
}

// LocalOn is [Local] on a topology.
func LocalOn(t *levels.Topology, o *Options) ([]*Comm, error) {
	if t == nil || t.Depth() == 0 {
		return nil, errNoTopology
	}
	if o == nil {
		o = &Options{}
	}
	p, err := o.policy()
	if err != nil {
		return nil, err
	}
	if err := tcp.UsableCongestion(o.congestion()); err != nil {
		return nil, err // as between processes, which would use it
	}
	t = t.OneProcess()
	if err := p.settle(o, t); err != nil {
		return nil, err
	}
	w := &world{World: local.NewShaped(t.Size(), o.config(), o.Link)}
	if err := o.observe(w); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	w.open.Store(int32(t.Size()))
	w.register(t)
	comms := make([]*Comm, t.Size())
	for r := range comms {
		comms[r] = &Comm{
			comm: w.Endpoint(levels.Rank(r)).Comm(0), world: w, topology: t,
			policy: p, memo: &memo{}, cache: map[tasks.Request]*Collective{},
		}
	}
	if p.measures {
		if err := measureAll(comms, p.keep); err != nil {
			return nil, err
		}
	}
	return comms, nil
}

// Run makes a communicator of goroutine ranks, calls f once per rank, each on a
// goroutine of its own, closes the communicator and returns the first error. When
// f fails or panics on one rank, the others' calls return a [PeerError]; so do
// those that wait for a rank on which f has returned.
func Run(ctx context.Context, topology string, o *Options, f func(ctx context.Context, c *Comm) error) error {
	comms, err := Local(topology, o)
	if err != nil {
		return err
	}
	return Each(ctx, comms, f)
}

// Each is [Run] on communicators that exist. It closes them, also when it can't call f.
func Each(ctx context.Context, comms []*Comm, f func(ctx context.Context, c *Comm) error) error {
	if len(comms) == 0 {
		return errors.New("there are no communicators; give one for each rank")
	}
	err := callable(ctx, f)
	for i, c := range comms {
		if c.made() != nil {
			err = errors.Join(err, fmt.Errorf("communicator %d of %d: %w", i, len(comms), errNoComm))
		} else if slices.Contains(comms[:i], c) {
			err = errors.Join(err, fmt.Errorf("communicator %d of %d is given twice", i, len(comms)))
		}
	}
	if err != nil { // the ranks that there are end with it
		f = func(context.Context, *Comm) error { return err }
		comms = slices.DeleteFunc(slices.Clone(comms), func(c *Comm) bool { return c.made() != nil })
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

// callable is an error if there is no context to call a function with, or no function.
func callable(ctx context.Context, f func(ctx context.Context, c *Comm) error) (err error) {
	if ctx == nil {
		err = errNoContext
	}
	if f == nil {
		err = errors.Join(err, errNoFunction)
	}
	return err
}

// guard calls f and closes the communicator. It reports an error before others
// can see its consequences. A panic is an error, and so is runtime.Goexit, as
// testing's FailNow calls it.
func (c *Comm) guard(ctx context.Context, f func(ctx context.Context, c *Comm) error, report func(error)) {
	err := fmt.Errorf("rank %d ended its goroutine", c.Rank())
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rank %d panicked: %v\n%s", c.Rank(), p, debug.Stack())
		}
		if err != nil {
			report(err)
			c.world.Fail(c.worldRank(), err)
		}
		if err := c.Close(); err != nil {
			report(err)
		}
	}()
	err = f(ctx, c)
}

// Rank is this rank's number, from 0.
func (c *Comm) Rank() int {
	c.mustBeMade()
	return int(c.comm.Rank())
}

// worldRank is a rank's number in the world.
func (c *Comm) worldRank() levels.Rank { return c.comm.Ranks()[c.comm.Rank()] }

// Size is the number of ranks.
func (c *Comm) Size() int {
	c.mustBeMade()
	return c.topology.Size()
}

// Topology is where the ranks are.
func (c *Comm) Topology() *levels.Topology {
	c.mustBeMade()
	return c.topology
}

// Links names the links between nodes, see [Options.Links]; empty: they are unknown.
func (c *Comm) Links() string {
	c.mustBeMade()
	return c.links
}

// Counters counts what this rank has done on the communicator.
func (c *Comm) Counters() executor.Counters {
	c.mustBeMade()
	return c.comm.Counters()
}

// Close leaves the communicator, and with the one of all ranks those that were
// made from it. Calls of the other ranks that would need this one fail from then
// on. Closing again does nothing; it is an error, on all ranks, while a call is on
// its way. Ranks that are processes wait for each other, for as long as
// [Options.CloseTimeout] says.
func (c *Comm) Close() error {
	if err := c.made(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	c.mu.Lock()
	closed := c.cache == nil
	c.cache, c.counts = nil, nil
	c.mu.Unlock() // calls needn't wait for those of other ranks
	if closed {
		return nil
	}
	if c.derived {
		return c.comm.Close()
	}
	err := c.comm.Endpoint().Close()
	if c.world.open.Add(-1) == 0 {
		c.world.forget()
		err = errors.Join(err, c.world.Close())
		if c.world.quiet != nil {
			c.world.quiet()
		}
	}
	return err
}

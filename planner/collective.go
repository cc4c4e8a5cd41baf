package planner

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/choose"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Collective is a compiled collective on fixed buffers, this rank's part of it.
// It can run any number of times, one run after the other. The functions whose names begin with Prepare
// make one: [PrepareAllreduce]. That is local, no message is sent, unless [Options.Effort] is [EffortMeasure].
// [PrepareAlltoallv] and [PrepareNeighbors] are not local: they exchange counts or lists.
type Collective struct {
	comm     *Comm
	request  tasks.Request
	decision choose.Decision
	compiled submodules.Compiled
	run      *executor.Run
	finish   func(dst []byte) // divides an average; nil otherwise
	around   around
	nans     bool // looks for them in the input
	copies   bool // blocks, from their place at its making
	send     []byte
	recv     []byte
	pending  Pending      // of the last Start
	urgency  int32        // see SetUrgency
	inStore  place        // of a one-shot call
	counter  *callCounter // counts its calls; nil: nobody does
}

// Pending is a started collective.
type Pending struct {
	c        *Collective
	finished bool // Wait has divided this run's sum
}

// Bcast copies buf of root to buf of all other ranks. Every rank gives a buffer of the same
// length. The compiled program is kept for the next call of the same size, as with all
// collectives here.
func Bcast[T any](ctx context.Context, c *Comm, buf []T, root int) error {
	return now(ctx, c, tasks.Request{Coll: tasks.Bcast}, root, nil, buf)
}

// Allreduce combines send of all ranks, element by element, into recv of all ranks. Every rank
// gives the same count. send and recv may be the same slice (in place) but must not overlap
// otherwise. A function of [tasks.UserOp] must not call the communicator.
func Allreduce[T any](ctx context.Context, c *Comm, send, recv []T, op tasks.Op) error {
	return now(ctx, c, tasks.Request{Coll: tasks.Allreduce, Op: op}, noRoot, send, recv)
}

// Reduce combines send of all ranks, element by element, into recv of root. Every rank gives
// the same count. Other ranks' recv is ignored and should be nil. At the root send and recv may
// be the same slice (in place) but must not overlap otherwise. A function of [tasks.UserOp] must
// not call the communicator.
func Reduce[T any](ctx context.Context, c *Comm, send, recv []T, op tasks.Op, root int) error {
	return now(ctx, c, tasks.Request{Coll: tasks.Reduce, Op: op}, root, send, recv)
}

// Allgather collects send of all ranks, one after the other in the order of ranks, in recv of
// all ranks. Every rank gives the same count; recv has that many elements for each rank. send may
// be this rank's own block of recv (in place) but must not overlap with recv otherwise.
func Allgather[T any](ctx context.Context, c *Comm, send, recv []T) error {
	return now(ctx, c, tasks.Request{Coll: tasks.Allgather}, noRoot, send, recv)
}

// Gather is [Allgather] to recv of root only. Other ranks' recv is ignored and should be nil; in
// place is for the root.
func Gather[T any](ctx context.Context, c *Comm, send, recv []T, root int) error {
	return now(ctx, c, tasks.Request{Coll: tasks.Gather}, root, send, recv)
}

// Scatter copies one block after the other of send of root to recv of each rank, in the order of
// ranks. Every rank gives a recv of the same length; send of root has that many elements for each
// rank. Other ranks' send is ignored and should be nil. At the root recv may be its own block of
// send (in place) but must not overlap with send otherwise.
func Scatter[T any](ctx context.Context, c *Comm, send, recv []T, root int) error {
	return now(ctx, c, tasks.Request{Coll: tasks.Scatter}, root, send, recv)
}

// ReduceScatter combines send of all ranks, element by element, and leaves one block after the
// other of the result in recv of each rank, in the order of ranks. Every rank gives a recv of the
// same length, and a send of that many elements for each rank. recv may be the beginning of send
// (in place): the rest of send then holds anything. It must not overlap with send otherwise.
func ReduceScatter[T any](ctx context.Context, c *Comm, send, recv []T, op tasks.Op) error {
	return now(ctx, c, tasks.Request{Coll: tasks.ReduceScatter, Op: op}, noRoot, send, recv)
}

// Barrier returns when all ranks have called it.
func Barrier(ctx context.Context, c *Comm) error {
	return c.runNow(ctx, tasks.Request{Coll: tasks.Barrier}, nil, nil)
}

// PrepareBcast compiles a [Bcast] for many runs with buf, which must stay where it is.
func PrepareBcast[T any](ctx context.Context, c *Comm, buf []T, root int) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.Bcast}, root, nil, buf)
}

// PrepareAllreduce compiles an [Allreduce] for many runs.
func PrepareAllreduce[T any](ctx context.Context, c *Comm, send, recv []T, op tasks.Op) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.Allreduce, Op: op}, noRoot, send, recv)
}

// PrepareReduce compiles a [Reduce] for many runs.
func PrepareReduce[T any](ctx context.Context, c *Comm, send, recv []T, op tasks.Op, root int) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.Reduce, Op: op}, root, send, recv)
}

// PrepareAllgather compiles an [Allgather] for many runs.
func PrepareAllgather[T any](ctx context.Context, c *Comm, send, recv []T) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.Allgather}, noRoot, send, recv)
}

// PrepareGather compiles a [Gather] for many runs.
func PrepareGather[T any](ctx context.Context, c *Comm, send, recv []T, root int) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.Gather}, root, send, recv)
}

// PrepareScatter compiles a [Scatter] for many runs.
func PrepareScatter[T any](ctx context.Context, c *Comm, send, recv []T, root int) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.Scatter}, root, send, recv)
}

// PrepareReduceScatter compiles a [ReduceScatter] for many runs.
func PrepareReduceScatter[T any](ctx context.Context, c *Comm, send, recv []T, op tasks.Op) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.ReduceScatter, Op: op}, noRoot, send, recv)
}

// PrepareBarrier compiles a [Barrier] for many runs.
func PrepareBarrier(ctx context.Context, c *Comm) (*Collective, error) {
	if err := c.checkCall(ctx); err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	return c.collective(ctx, tasks.Request{Coll: tasks.Barrier}, nil, nil)
}

// noRoot is the root argument of prepare and now for collectives without a root.
const noRoot = 0

// prepare fills in the root and the element type and looks at the buffers as bytes.
func prepare[T any](ctx context.Context, c *Comm, r tasks.Request, root int, send, recv []T) (*Collective, error) {
	if err := c.checkCall(ctx); err != nil {
		return nil, fmt.Errorf("%v: %w", r.Coll, err)
	}
	r, from, to, err := requestOf(c, r, root, send, recv)
	if err != nil {
		return nil, err
	}
	return c.collective(ctx, r, from, to)
}

func now[T any](ctx context.Context, c *Comm, r tasks.Request, root int, send, recv []T) error {
	r, from, to, err := requestOf(c, r, root, send, recv)
	if err != nil {
		return err
	}
	return c.runNow(ctx, r, from, to)
}

// collective decides, compiles and binds.
func (c *Comm) collective(ctx context.Context, r tasks.Request, send, recv []byte) (*Collective, error) {
	d, err := c.decideOrTry(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.prepareBy(d, r, userCall, send, recv)
}

// prepareBy is collective with a chosen plan.
func (c *Comm) prepareBy(d *choose.Decision, r tasks.Request, why purpose, send, recv []byte) (col *Collective, err error) {
	b, err := c.binding(r, d.Plan, why)
	if err != nil {
		return nil, err
	}
	return c.bind(d, r, b, cmp.Or(string(why), r.Coll.String()), send, recv)
}

// bind makes a collective of a compiled binding. tally is the name for counting its calls.
func (c *Comm) bind(d *choose.Decision, r tasks.Request, b executor.Binding, tally string, send, recv []byte) (col *Collective, err error) {
	col = &Collective{comm: c, request: r, decision: *d, compiled: b.Compiled, send: send, recv: recv}
	b.Reasons = col.decision.Reasons
	if col.run, err = c.bindRun(r, b, tally, send, recv); err != nil {
		return nil, err
	}
	if n := r.Combines(c.comm.Rank(), c.Size()); r.Reduces() && n > 0 && r.Receives(c.comm.Rank()) {
		col.finish = kernel.Finish(r.Op, r.Type, n, c.Size())
	}
	if c.world.calls != nil && c.worldRank() == 0 && tally == r.Coll.String() {
		col.counter = c.world.calls.of(r, c.topology, d.Plan)
	}
	if c.common.Uniform && r.Input(c.comm.Rank()) == tasks.Recv && (r.Reduces() || r.Exchanges()) {
		col.around.keepInput(&col.recv)
	}
	col.nans = c.world.nans && r.Reduces()
	col.pending.c = col
	return col, nil
}

// Run runs the collective and returns when this rank's part is done: its buffers
// are its own again. From the second run on it allocates nothing. When ctx is
// cancelled first, the communicator breaks on all ranks.
func (c *Collective) Run(ctx context.Context) error {
	if c == nil || c.run == nil || ctx == nil {
		return c.unusable("run")
	}
	if c.nans {
		if err := c.checkInput(); err != nil {
			return err
		}
	}
	if err := c.around.begin(); err != nil {
		return fmt.Errorf("run %v: %w", c.request, err)
	}
	begun := c.counter.begin()
	err := c.run.Do(ctx)
	c.around.end(err)
	if err == nil && c.finish != nil {
		c.finish(c.result())
	}
	c.counter.end(begun, err == nil)
	return err
}

// result is the part of the receive buffer with the result of a reduction.
func (c *Collective) result() []byte {
	if !c.request.TakesBlocks() {
		return c.recv
	}
	_, n := c.request.Block(c.comm.comm.Rank())
	return c.recv[:n]
}

// Start starts the collective and returns at once; an error shows in Wait. The
// buffers must not be touched until then. Other collectives may be started and
// run meanwhile.
//
// It goes on while the program computes if the rank has a second processor. With GOMAXPROCS=1 it goes on in the rank's
// other calls, and when Go interrupts the program, some 10 ms late. tierflow run leaves each rank one processor where a host
// has no more of them than ranks.
func (c *Collective) Start(ctx context.Context) (*Pending, error) {
	if c == nil || c.run == nil || ctx == nil {
		return nil, c.unusable("start")
	}
	if c.nans {
		if err := c.checkInput(); err != nil {
			return nil, err
		}
	}
	if err := c.around.begin(); err != nil {
		return nil, fmt.Errorf("start %v: %w", c.request, err)
	}
	begun := c.counter.begin()
	if err := c.run.Start(ctx); err != nil {
		c.around.end(err)
		return nil, err
	}
	c.counter.end(begun, false)
	c.pending.finished = false
	return &c.pending, nil
}

// SetUrgency orders the started collectives of this rank: the largest urgency goes first, then the
// earliest start. It is 0 until it is set, and can be set between calls. Ranks may
// differ in it, but a collective that one rank hurries still waits for the others.
func (c *Collective) SetUrgency(n int32) error {
	if c == nil || c.run == nil {
		return c.unusable("set the urgency")
	}
	if err := c.run.SetUrgency(n); err != nil {
		return err
	}
	c.urgency = n
	return nil
}

// Wait blocks until the collective has ended on this rank. It must be called for each Start, by one
// goroutine. If ctx is cancelled first, the communicator breaks on all ranks, and the error is the
// context's cause.
func (p *Pending) Wait(ctx context.Context) error {
	if p == nil || p.c == nil {
		return errNoPending
	}
	if ctx == nil {
		return fmt.Errorf("wait for %v: %w", p.c.request, errNoContext)
	}
	begun := p.c.counter.begin()
	err := p.c.run.Wait(ctx)
	p.c.around.end(err)
	if err != nil {
		return err
	}
	if p.c.finish != nil && !p.finished {
		p.c.finish(p.c.result())
	}
	p.c.counter.end(begun, !p.finished)
	p.finished = true
	return nil
}

// Done reports whether the collective has ended on this rank, and Wait would return at
// once. An end with an error counts too.
func (p *Pending) Done() bool {
	if p == nil || p.c == nil {
		return true // with an error
	}
	return p.c.run.Done()
}

// Plan returns the chosen plan.
func (c *Collective) Plan() tasks.Plan {
	c.mustBeMade()
	return c.decision.Plan
}

// Request returns the request behind the collective.
func (c *Collective) Request() tasks.Request {
	c.mustBeMade()
	return c.request
}

func (c *Collective) place() *place    { return &c.inStore }
func (c *Collective) footprint() int64 { return c.run.Footprint() }

func (c *Collective) rebind(send, recv []byte) error {
	if err := c.run.Rebind(send, recv); err != nil {
		return err
	}
	c.send, c.recv = send, recv
	return nil
}

// Explain returns a text: the plan chosen for this collective, by whom and why, and
// the alternatives.
func (c *Collective) Explain() string {
	c.mustBeMade()
	text := c.decision.Explain(builtin.Ask(c.request, c.comm.topology), c.comm.registry)
	if by := c.comm.Secured(); by != "" {
		text = strings.TrimRight(text, "\n") + "\nbetween nodes: " + by + "\n"
	}
	if c.comm.note != nil {
		text = strings.TrimRight(text, "\n") + "\n  tuner of " + c.comm.note() + "\n"
	}
	return text
}

// unusable returns why a collective can't begin to run: there is none, or else no context.
func (c *Collective) unusable(what string) error {
	if c == nil || c.run == nil {
		return fmt.Errorf("%s: %w", what, errNoCollective)
	}
	return fmt.Errorf("%s %v: %w", what, c.request, errNoContext)
}

func (c *Collective) mustBeMade() {
	if c == nil || c.run == nil {
		panic(errNoCollective)
	}
}

package planner

import (
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/tasks"
)

// Prepare is [PrepareAllreduce] and the others for a caller without the elements' type at
// compile time, such as a library for another language. Buffers have the lengths of
// [tasks.Request.Buffers] for this rank, nil for none. Fields of the request that its collective
// doesn't use, such as the root of an allreduce, are ignored. In place is up to the request: the
// only buffer is then the receive buffer, or the send buffer of a scatter's root. Alltoallv and the
// other collectives with an exchange of counts need these in the request.
func (c *Comm) Prepare(ctx context.Context, r tasks.Request, send, recv []byte) (*Collective, error) {
	r, err := c.checkRaw(r, send, recv)
	if err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, fmt.Errorf("%v: %w", r, errNoContext)
	}
	return c.collective(ctx, r, send, recv)
}

// RunRequest is [Comm.Prepare] and a run in one call. The compiled program is kept for the next
// call of an equal request: from the second on it allocates nothing.
func (c *Comm) RunRequest(ctx context.Context, r tasks.Request, send, recv []byte) error {
	if c.checkCall(ctx) == nil { // else the calls below return an error
		if col := c.store.recall(r, send, recv); col != nil {
			return c.store.run(ctx, col, send, recv)
		}
	}
	canonical, err := c.checkRaw(r, send, recv)
	if err != nil {
		return err
	}
	if err := c.runNow(ctx, canonical, send, recv); err != nil {
		return err
	}
	c.store.note(r, canonical, send, recv)
	return nil
}

// Rebind gives a collective other buffers of the same lengths, between two runs.
func (c *Collective) Rebind(send, recv []byte) error {
	if c == nil || c.run == nil {
		return c.unusable("rebind")
	}
	if c.copies {
		return fmt.Errorf("rebind %v: it copies blocks, from where they were when it was made", c.request)
	}
	if err := c.comm.checkBuffers(c.request, send, recv); err != nil {
		return err
	}
	return c.rebind(send, recv)
}

// checkRaw is Canonical with a look at the buffers.
func (c *Comm) checkRaw(r tasks.Request, send, recv []byte) (tasks.Request, error) {
	r, err := c.Canonical(r)
	if err == nil {
		err = c.checkBuffers(r, send, recv)
	}
	return r, err
}

// Canonical checks a request and clears fields without use for its collective on this rank.
// [tasks.Request.Buffers] of the result are the lengths of this rank's buffers in [Comm.Prepare].
func (c *Comm) Canonical(r tasks.Request) (tasks.Request, error) {
	if err := c.checkMade(); err != nil {
		return r, fmt.Errorf("%v: %w", r.Coll, err)
	}
	return c.base.canonical(r)
}

// Ready compiles a request for later calls of [Comm.RunRequest], and keeps the program. It sends
// no message, unless [Options.Effort] is [EffortMeasure].
func (c *Comm) Ready(ctx context.Context, r tasks.Request) error {
	r, err := c.Canonical(r)
	if err != nil {
		return err
	}
	return c.store.ready(use{userCall, r}, func() (program, error) { return c.oneShot(ctx, r) })
}

// ExplainRequest is [Collective.Explain] of a request, without buffers.
func (c *Comm) ExplainRequest(r tasks.Request) (string, error) {
	r, err := c.Canonical(r)
	if err != nil {
		return "", err
	}
	d, err := c.decide(&r, &c.base)
	if err != nil {
		return "", err
	}
	return d.Explain(builtin.Ask(r, c.topology), c.registry), nil
}

// DrawID returns a number for [Comm.Sub], never that of another communicator. One
// rank draws it and tells the others.
func (c *Comm) DrawID() (uint64, error) {
	if err := c.checkMade(); err != nil {
		return 0, fmt.Errorf("draw: %w", err)
	}
	id, err := c.comm.Endpoint().Draw()
	return uint64(id), err
}

// Sub is [Comm.Split] for ranks that know their group already: it is local. The
// communicator has the given ranks of c, in their order, and this rank must be one of them.
// All of them must give the same ranks, and the same number, drawn by one of them
// ([Comm.DrawID]).
func (c *Comm) Sub(id uint64, ranks []int) (*Comm, error) {
	if err := c.checkMade(); err != nil {
		return nil, fmt.Errorf("sub: %w", err)
	}
	own := make([]levels.Rank, len(ranks))
	for i, n := range ranks {
		r, err := c.rank("rank", n)
		if err != nil {
			return nil, fmt.Errorf("sub: %w", err)
		}
		if slices.Contains(ranks[:i], n) {
			return nil, fmt.Errorf("sub: rank %d twice in %v", n, ranks)
		}
		own[i] = r
	}
	some, world, err := c.subset(own)
	if err != nil {
		return nil, fmt.Errorf("sub: %w", err)
	}
	if some.comm, err = c.comm.Endpoint().Make(executor.CommID(id), world); err != nil {
		return nil, fmt.Errorf("sub: %w", err)
	}
	d, err := c.wrap(some)
	if err != nil {
		return nil, fmt.Errorf("sub: %w", err)
	}
	return d, nil
}

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

// prepareRequest is raw.Prepare.
func (c *Comm) prepareRequest(ctx context.Context, r tasks.Request, send, recv []byte) (*Collective, error) {
	r, err := c.checkRaw(r, send, recv)
	if err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, fmt.Errorf("%v: %w", r, errNoContext)
	}
	return c.collective(ctx, r, send, recv)
}

// runRequest is raw.Run.
func (c *Comm) runRequest(ctx context.Context, r tasks.Request, send, recv []byte) error {
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

// rebindTo is raw.Rebind.
func (c *Collective) rebindTo(send, recv []byte) error {
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

// checkRaw is checkRequest with a look at the buffers.
func (c *Comm) checkRaw(r tasks.Request, send, recv []byte) (tasks.Request, error) {
	r, err := c.checkRequest(r)
	if err == nil {
		err = c.checkBuffers(r, send, recv)
	}
	return r, err
}

// checkRequest is raw.Canonical.
func (c *Comm) checkRequest(r tasks.Request) (tasks.Request, error) {
	if err := c.checkMade(); err != nil {
		return r, fmt.Errorf("%v: %w", r.Coll, err)
	}
	return c.base.canonical(r)
}

// ready is raw.Ready.
func (c *Comm) ready(ctx context.Context, r tasks.Request) error {
	r, err := c.checkRequest(r)
	if err != nil {
		return err
	}
	return c.store.ready(use{userCall, r}, func() (program, error) { return c.oneShot(ctx, r) })
}

// explainRequest is raw.Explain.
func (c *Comm) explainRequest(r tasks.Request) (string, error) {
	r, err := c.checkRequest(r)
	if err != nil {
		return "", err
	}
	d, err := c.decide(&r, &c.base)
	if err != nil {
		return "", err
	}
	return d.Explain(builtin.Ask(r, c.topology), c.registry), nil
}

// drawID is raw.DrawID.
func (c *Comm) drawID() (uint64, error) {
	if err := c.checkMade(); err != nil {
		return 0, fmt.Errorf("draw: %w", err)
	}
	id, err := c.comm.Endpoint().Draw()
	return uint64(id), err
}

// sub is raw.Sub.
func (c *Comm) sub(id uint64, ranks []int) (*Comm, error) {
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

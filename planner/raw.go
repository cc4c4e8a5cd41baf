package planner

import (
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/tasks"
)

// Prepare is [Bcast], [Allreduce] and the others for a caller that knows the elements only
// when it runs, such as a library for another language. Buffers are the bytes that
// [tasks.Request.Buffers] tells of this rank, nil where that is none; what the collective
// has no use for, a root for one, is not looked at. In place is what the request says: the
// buffer is then the receive buffer, the send buffer of a scatter's root. Alltoallv and
// the others whose ranks tell each other counts need these in the request.
func (c *Comm) Prepare(r tasks.Request, send, recv []byte) (*Collective, error) {
	r, err := c.canonical(r, send, recv)
	if err != nil {
		return nil, err
	}
	return c.collective(r, send, recv)
}

// PrepareNow is [Comm.Prepare] and a run in one call. What it compiles is kept for the next
// call of an equal request: from the second on it allocates nothing.
func (c *Comm) PrepareNow(ctx context.Context, r tasks.Request, send, recv []byte) error {
	if col := c.recall(ctx, r, send, recv); col != nil {
		return c.runBorrowed(ctx, col, send, recv)
	}
	canonical, err := c.canonical(r, send, recv)
	if err != nil {
		return err
	}
	if err := c.now(ctx, canonical, send, recv); err != nil {
		return err
	}
	c.mu.Lock()
	c.recent[slotOf(r)] = recent{asked: r, col: c.cache[canonical], send: len(send), recv: len(recv)}
	c.mu.Unlock()
	return nil
}

// recall marks a recent call's collective as busy and returns it; nil: there is none that is
// free for this request and buffers like these.
func (c *Comm) recall(ctx context.Context, r tasks.Request, send, recv []byte) *Collective {
	if c.usable(ctx) != nil {
		return nil // which is said later
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &c.recent[slotOf(r)]
	if e.col == nil || e.col.busy || c.cache == nil || e.asked != r || len(send) != e.send || len(recv) != e.recv || overlap(send, recv) {
		return nil
	}
	e.col.busy = true
	c.cacheUse.touch(e.col)
	return e.col
}

// Rebind gives a collective other buffers of the same lengths, between two runs.
func (c *Collective) Rebind(send, recv []byte) error {
	if c == nil || c.run == nil {
		return c.unusable("rebind")
	}
	if c.around.before != nil {
		return fmt.Errorf("rebind %v: it copies blocks, from where they were when it was made", c.request)
	}
	if err := c.comm.checkBuffers(c.request, send, recv); err != nil {
		return err
	}
	return c.rebind(send, recv)
}

// canonical is Canonical with a look at the buffers.
func (c *Comm) canonical(r tasks.Request, send, recv []byte) (tasks.Request, error) {
	r, err := c.Canonical(r)
	if err == nil {
		err = c.checkBuffers(r, send, recv)
	}
	return r, err
}

// Canonical checks a request and leaves out what its collective has no use for on this rank:
// what [tasks.Request.Buffers] then says is what this rank must give to [Comm.Prepare].
func (c *Comm) Canonical(r tasks.Request) (tasks.Request, error) {
	if err := c.made(); err != nil {
		return r, fmt.Errorf("%v: %w", r.Coll, err)
	}
	if err := r.Validate(c.Size()); err != nil {
		return r, fmt.Errorf("%v: %w", r.Coll, err)
	}
	if !r.Coll.HasData() {
		return tasks.Request{Coll: r.Coll}, nil
	}
	if !r.Reduces() {
		r.Op = tasks.Op{}
	}
	if !r.Rooted() {
		r.Root = 0
	}
	if r.Count == 0 {
		r.Counts, r.Matrix = tasks.Counts{}, tasks.Matrix{}
	}
	r.InPlace = r.InPlace && c.hasBoth(r)
	return r, nil
}

// hasBoth reports whether this rank puts something in and gets something, apart.
func (c *Comm) hasBoth(r tasks.Request) bool {
	r.InPlace = false
	me := c.comm.Rank()
	return r.Coll.Row().Placement != tasks.OnlyRecv && r.Gives(me) && r.Receives(me)
}

// checkBuffers checks the lengths of a rank's buffers, and that they lie apart.
func (c *Comm) checkBuffers(r tasks.Request, send, recv []byte) error {
	wantSend, wantRecv := r.Buffers(c.comm.Rank(), c.Size())
	if int64(len(send)) != wantSend || int64(len(recv)) != wantRecv {
		return fmt.Errorf("%v: buffers of %d bytes to send and %d to receive; rank %d must give %d and %d", r, len(send), len(recv), c.Rank(), wantSend, wantRecv)
	}
	if overlap(send, recv) {
		return fmt.Errorf("%v: %w", r, errOverlap)
	}
	return nil
}

// Ready compiles what [Comm.PrepareNow] of a request would compile, and keeps it. It sends
// no message.
func (c *Comm) Ready(r tasks.Request) error {
	r, err := c.Canonical(r)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache == nil {
		return fmt.Errorf("%v: %w", r, ErrClosed)
	}
	if c.cache[r] != nil {
		return nil
	}
	col, err := c.collective(r, nil, nil)
	if err == nil {
		c.keep(r, col)
	}
	return err
}

// ExplainRequest is [Collective.Explain] of a request, without buffers.
func (c *Comm) ExplainRequest(r tasks.Request) (string, error) {
	r, err := c.Canonical(r)
	if err != nil {
		return "", err
	}
	d, err := c.decide(r)
	if err != nil {
		return "", err
	}
	return d.Explain(rule.Ask(r, c.topology), c.registry), nil
}

// DrawID returns a number for [Comm.Sub] that no other communicator has or will have. One
// rank draws it and tells the others.
func (c *Comm) DrawID() (uint64, error) {
	if err := c.made(); err != nil {
		return 0, fmt.Errorf("draw: %w", err)
	}
	id, err := c.comm.Endpoint().Draw()
	return uint64(id), err
}

// Sub is [Comm.Split] for a caller whose ranks know already who they are: it is local. The
// communicator has the given ranks of c, in their order, and this rank must be one of them.
// All of them must give the same ranks, and the same number, which one of them has drawn
// ([Comm.DrawID]).
func (c *Comm) Sub(id uint64, ranks []int) (*Comm, error) {
	if err := c.made(); err != nil {
		return nil, fmt.Errorf("sub: %w", err)
	}
	own, world := make([]levels.Rank, len(ranks)), make([]levels.Rank, len(ranks))
	for i, n := range ranks {
		r, err := c.rank("rank", n)
		if err != nil {
			return nil, fmt.Errorf("sub: %w", err)
		}
		if slices.Contains(ranks[:i], n) {
			return nil, fmt.Errorf("sub: rank %d twice in %v", n, ranks)
		}
		own[i], world[i] = r, c.comm.Ranks()[r]
	}
	t, err := c.topology.Sub(own)
	if err != nil {
		return nil, fmt.Errorf("sub: %w", err)
	}
	made, err := c.comm.Endpoint().Make(executor.CommID(id), world)
	if err != nil {
		return nil, fmt.Errorf("sub: %w", err)
	}
	return c.over(made, t), nil
}

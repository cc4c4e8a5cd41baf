package planner

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/tasks"
)

// runNow runs a one-shot call on a kept collective, or on a new one if none is free.
func (c *Comm) runNow(ctx context.Context, r tasks.Request, send, recv []byte) error {
	if err := c.checkCall(ctx); err != nil {
		return fmt.Errorf("%v: %w", r, err)
	}
	x, err := c.store.borrow(use{userCall, r}, func() (program, error) { return c.oneShot(ctx, r) })
	if err != nil {
		return err
	}
	return c.store.run(ctx, x.(*Collective), send, recv)
}

// oneShot makes the collective of one-shot calls: without buffers, and with shared memory only
// during a call, since many are kept.
func (c *Comm) oneShot(ctx context.Context, r tasks.Request) (*Collective, error) {
	d, err := c.decideOrTry(ctx, r)
	if err != nil {
		return nil, err
	}
	b, err := c.binding(r, d.Plan, userCall)
	if err != nil {
		return nil, err
	}
	b.Borrows = true
	return c.bind(d, r, b, r.Coll.String(), nil, nil)
}

// run runs a borrowed collective, and gives it back.
func (s *store) run(ctx context.Context, col *Collective, send, recv []byte) error {
	err := col.rebind(send, recv)
	if err == nil {
		err = col.Run(ctx)
	}
	s.mu.Lock()
	_ = col.rebind(nil, nil) // lets the caller's buffers go
	col.inStore.busy = false
	s.mu.Unlock()
	return err
}

// recent is a one-shot call by bytes that ended well. Finding it again takes no look
// at the whole request: that would take longer than a short call.
type recent struct {
	asked      tasks.Request
	col        *Collective // in the store; nil: none
	send, recv int         // lengths of its buffers
}

// recents is how many of them a communicator remembers.
const (
	recentBits = 6
	recents    = 1 << recentBits
)

// slotOf returns the place of a request among the recent ones.
func slotOf(r tasks.Request) int {
	return int(((uint64(r.Count)<<24 ^ uint64(r.Root)<<8 ^ uint64(r.Coll)) * 0x9e3779b97f4a7c15) >> (64 - recentBits))
}

// recall borrows a recent call's collective; nil: none is free for this
// request and buffers like these.
func (s *store) recall(r tasks.Request, send, recv []byte) *Collective {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.recent[slotOf(r)]
	if e.col == nil || e.col.inStore.busy || e.asked != r || len(send) != e.send || len(recv) != e.recv || overlap(send, recv) {
		return nil
	}
	s.kept.lend(&e.col.inStore)
	return e.col
}

// note lets recall find the collective of a call that ended well. It is kept for the canonical
// request of what was asked.
func (s *store) note(asked, canonical tasks.Request, send, recv []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	col, _ := s.kept.programs[use{userCall, canonical}].(*Collective)
	s.recent[slotOf(asked)] = recent{asked: asked, col: col, send: len(send), recv: len(recv)}
}

// scalar has room for any element of a reduction. Such elements hold no pointers; the
// largest are complex128 and a tasks.Loc of 8 bytes.
type scalar [2]uint64

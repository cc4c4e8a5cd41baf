package planner

import (
	"fmt"
	"sync/atomic"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// unify lets all calls of a new communicator end alike on its ranks, if that was asked for, see [Options.Uniform].
func (c *Comm) unify() error {
	if !c.uniform {
		return nil
	}
	r := tasks.Request{Coll: tasks.Barrier}
	d, err := policy{registry: c.registry}.choose(r, c.topology)
	if err != nil {
		return fmt.Errorf("uniform calls: %w", err)
	}
	barrier, err := submodules.CompileRequest(r, c.topology, d.Plan, c.comm.Rank(), c.registry)
	if err == nil {
		err = c.comm.Seal(barrier.Rest)
	}
	if err != nil {
		return fmt.Errorf("uniform calls: %w", err)
	}
	return nil
}

// undo keeps what a call would overwrite of its own input until it has ended well.
type undo struct {
	saved []byte      // what was in the receive buffer
	open  atomic.Bool // a call is on its way
}

// newUndo returns nil where a failed call leaves the input as it was anyway.
func (c *Comm) newUndo(r tasks.Request) *undo {
	if !c.uniform || r.Input(c.comm.Rank()) != tasks.Recv || !r.Reduces() && !r.Exchanges() {
		return nil
	}
	return &undo{}
}

// begin saves the input. Another call of the same collective must not be on its way: its input is in use.
func (u *undo) begin(recv []byte) error {
	if u == nil {
		return nil
	}
	if !u.open.CompareAndSwap(false, true) {
		return executor.ErrBusy
	}
	u.saved = append(u.saved[:0], recv...)
	return nil
}

// end puts it back if the call has failed, once.
func (u *undo) end(recv []byte, err error) {
	if u == nil || !u.open.Load() {
		return
	}
	if err != nil {
		copy(recv, u.saved)
	}
	u.open.Store(false)
}

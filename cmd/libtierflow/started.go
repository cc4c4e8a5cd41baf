//go:build cgo

package main

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// running is a call on its way. Wait is called once.
type running interface {
	Done() bool
	Wait(ctx context.Context) error
}

// started is what a tf_run stands for.
type started struct {
	running
	progress func() // called by a thread in await; nil: none
	waiter   atomic.Pointer[waiter]
}

// waiter waits for the end of a call; nil: nobody does.
type waiter struct {
	ended chan struct{} // closed at the end
	err   error
}

// caller is the waiter of a call that a thread waits for itself, in end.
var caller waiter

// Done reports whether it has ended. At its end a call may be used again for another one, and knows nothing of its
// own end then.
func (s *started) Done() bool {
	w := s.waiter.Load()
	if w == nil || w == &caller {
		return s.running.Done()
	}
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// await waits for the call's end, and reports whether it has come before that of ctx. The call goes on.
func (s *started) await(ctx context.Context) bool {
	if s.progress != nil {
		return s.awaitHere(ctx)
	}
	w := &waiter{ended: make(chan struct{})}
	if s.waiter.CompareAndSwap(nil, w) {
		go func() { // end waits for it
			w.err = s.Wait(context.Background())
			close(w.ended)
		}()
	}
	if w = s.waiter.Load(); w == &caller {
		return true // for tf_wait of another thread, which has taken the number
	}
	select {
	case <-w.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// awaitHere is await on the caller's thread, the only one to call progress.
func (s *started) awaitHere(ctx context.Context) bool {
	for !s.Done() {
		if ctx.Err() != nil {
			return false
		}
		s.progress()
		runtime.Gosched()
	}
	return true
}

// end waits for the call, once.
func (s *started) end() error {
	if s.waiter.CompareAndSwap(nil, &caller) {
		return s.Wait(context.Background())
	}
	w := s.waiter.Load()
	<-w.ended
	return w.err
}

// startedCollective goes back to its communicator at its end.
type startedCollective struct {
	*planner.Pending
	comm *comm
	col  *planner.Collective
}

// start starts a used collective again, or a new one.
func (c *comm) start(r tasks.Request, send, recv []byte) (s *startedCollective, err error) {
	if s = c.spareFor(r); s != nil {
		err = raw.Rebind(s.col, send, recv)
	} else {
		s = &startedCollective{comm: c}
		s.col, err = raw.Prepare(context.Background(), c.Comm, r, send, recv)
	}
	if err != nil {
		return nil, err
	}
	if s.Pending, err = s.col.Start(context.Background()); err != nil {
		return nil, err
	}
	return s, nil
}

// spareFor takes a collective of an earlier start; nil: there is none.
func (c *comm) spareFor(r tasks.Request) *startedCollective {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.spare[r]
	if len(list) == 0 {
		return nil
	}
	s := list[len(list)-1]
	c.spare[r] = list[:len(list)-1]
	c.count--
	return s
}

// Wait waits for it, and keeps the reusable collective.
func (s *startedCollective) Wait(ctx context.Context) error {
	if err := s.Pending.Wait(ctx); err != nil {
		return err
	}
	c := s.comm
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count >= maxSpare || c.spare == nil {
		c.spare, c.count = map[tasks.Request][]*startedCollective{}, 0
	}
	r := s.col.Request()
	c.spare[r] = append(c.spare[r], s)
	c.count++
	return nil
}

package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/levels"
)

// Close ends the world: runs still on their way return [ErrClosed]. It returns when all its
// goroutines have ended; calling it again does nothing. It is an error if an operation of a caller
// doesn't return within a second; its call, and the links, end when it does. So it may even be the
// operation that closes.
//
// A process waits for two kinds of others to close too: its partners in data, because its last
// bytes may still be on their way, and its neighbours in the job's control tree, because they reach
// others through it. It stops waiting for the dead among them; those alive after
// [Config.CloseTimeout] are the error.
func (w *World) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.eachLocal(func(e *Endpoint) {
		e.markBrokenWhere(e.rank, ErrClosed, func(*Comm) bool { return true })
	})
	w.eachLocal(func(e *Endpoint) {
		e.mu.Lock()
		ids := e.comms.listIDs(func(*Comm) bool { return true })
		e.mu.Unlock()
		for _, id := range ids {
			e.endBroken(id)
		}
	})
	ranks := w.operatingRanks()
	if len(ranks) == 0 {
		return w.end()
	}
	ended, err := make(chan struct{}), error(nil)
	go func() {
		defer close(ended)
		err = w.end()
	}()
	select {
	case <-ended:
		return err
	case <-time.After(operationTime):
		return fmt.Errorf("closed while an operation of rank %d runs: its call ends when it returns", ranks[0])
	}
}

// operationTime is how long Close waits for operations of callers.
const operationTime = time.Second

// end ends the goroutines of the world, its links and its recordings, after all calls have ended or wait for their
// callers' operations only.
func (w *World) end() error {
	w.eachLocal((*Endpoint).stopDriving)
	err := w.endTrace()
	switch {
	case w.control != nil:
		err = errors.Join(err, w.control.close())
	case w.stop != nil:
		w.stop(context.Background())
	}
	return errors.Join(err, w.endRecordings())
}

// stopDriving ends driving for good; all runs have ended, or end with their callers' operations. It returns when the
// last driver has released the link, and the last operation has returned.
func (e *Endpoint) stopDriving() {
	e.mu.Lock()
	e.stopped = true
	e.tellNews()
	e.awaitUndriven()
	e.mu.Unlock()
	e.voter.Stop()
	e.background.Wait()
	e.mu.Lock()
	e.awaitUndriven() // by a goroutine that has come to wait for a call with its operation on its way
	if e.impatience != nil {
		e.impatience.Stop()
	}
	e.mu.Unlock()
}

// awaitUndriven returns when nobody drives any more. The lock is held, but not meanwhile.
func (e *Endpoint) awaitUndriven() {
	for e.driving {
		e.sleeper.Wake()
		e.undriven.Wait()
	}
}

// hurriedClose is how long Close waits for others in a job that has failed.
const hurriedClose = time.Second

// HurryClose lets Close wait for others for a second at most: after a failure they may be long in coming, or hang.
func (w *World) HurryClose() { w.hurried.Store(true) }

// close ends the transport, and leaves the job.
func (c *control) close() error {
	limit := c.world.config.CloseTimeout
	if c.world.hurried.Load() {
		limit = min(limit, hurriedClose)
	}
	cause := fmt.Errorf("waited for %v: %w", limit, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, cause)
	defer cancel()
	if c.world.failed.Load() {
		cancel()
	}
	defer c.watchClose()()
	if c.world.stop != nil {
		c.world.stop(ctx)
	}
	c.awaitDirect(ctx)
	c.endNotes()
	err := c.job.Close(ctx)
	if c.world.failed.Load() { // nobody was waited for
		return nil
	}
	return err
}

// watchClose reports the ranks missing at Close once this one has waited for Config.StallAfter,
// until end is called.
func (c *control) watchClose() (end func()) {
	limit := c.world.config.StallAfter
	if limit <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(limit):
			c.reportUnclosed(ctx)
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// noteGone notes the silent ranks that have said goodbye to the job: nobody reads their goodbyes to the communicators any
// more.
func (c *control) noteGone(ctx context.Context, states []flight.State) {
	for i := range states {
		if s := &states[i]; s.Doing == flight.Silent && c.job.Gone(ctx, levels.Rank(s.Rank)) {
			s.Doing = flight.Left
		}
	}
}

// reportUnclosed finds out which ranks have not come to Close, and why, unless ctx ends.
func (c *control) reportUnclosed(ctx context.Context) {
	isOver := func() bool { return ctx.Err() != nil }
	w := c.world
	states := w.states(w.everyRank(), askReason{comm: noComm}, isOver)
	c.noteGone(ctx, states)
	f := verdict.Unclosed(states, verdict.Options{Nodes: w.config.Nodes}, w.config.StallAfter)
	if isOver() || f == nil {
		return
	}
	if c.ended.Load() { // rank 0 hears no more
		w.reportVerdict(f)
	} else {
		w.tellVerdict(c.me, f, states)
	}
	if w.config.Dump != nil {
		states = slices.DeleteFunc(states, func(s flight.State) bool { return s.Doing == flight.Silent }) // others may close
		w.config.Dump(states, f)
	}
}

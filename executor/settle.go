package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/internal/ballot"
)

const (
	// minorityTime is how long too few ranks wait for others only suspected.
	minorityTime = 30 * time.Second
	// decideTime bounds an agreement without a question to programs. Ranks in long operations of
	// their callers vote when these have ended.
	decideTime = 2 * time.Minute
	// settleTime is how long a call with its context done waits for the others' word how it has
	// ended.
	settleTime = 2 * time.Second
)

// Wait blocks until the call has ended and returns its error, as [Run.Do] does. When ctx is cancelled first, the
// communicator breaks on all ranks and the error is the context's cause. Waiting again returns the same error.
func (r *Run) Wait(ctx context.Context) error { return r.settle(ctx, r.ending.Wait(ctx)) }

// settle returns the outcome of a call. On a sealed communicator a failed call waits for the
// agreement of the ranks that go on. No program has to call anything for it. When ctx is done they
// have settleTime more; then this rank leaves, and the others go on without it.
func (r *Run) settle(ctx context.Context, err error) error {
	if err == nil || r.seal == nil {
		return err
	}
	c, e := r.comm, r.comm.e
	e.mu.Lock()
	open := c.broken != nil && !c.isClosed(e.stopped) && r.started
	e.mu.Unlock()
	if !open { // then no rank can have been through the barrier
		return err
	}
	m, failed := c.decide(ctx, settleTime)
	if failed != nil {
		e.mu.Lock()
		c.quitCause = failed
		e.mu.Unlock()
		_ = c.leave(true) // else the others would wait for this rank
		return fmt.Errorf("%w, after: %w", failed, err)
	}
	switch d := m.Decision(); {
	case !d.Members.Has(int(c.me)):
		return fmt.Errorf("%w, after: %w", ErrExcluded, err)
	case int32(r.seq-d.Calls[0]) < 0:
		return nil
	}
	return err
}

// decide waits for the agreement about a broken communicator. After the end of ctx it waits for
// more.
func (c *Comm) decide(ctx context.Context, more time.Duration) (*ballot.Agreement, error) {
	e := c.e
	e.mu.Lock()
	m := c.openAgreement(0)
	e.mu.Unlock()
	if m == nil {
		return nil, ErrClosed
	}
	m.Begin(c.countComplete(), true)
	limit := time.Now().Add(decideTime)
	var over time.Time // ctx counts from then on; zero: it isn't done
	wait := ctx
	if more > 0 {
		wait = context.WithoutCancel(ctx)
	}
	return m, e.await(wait, m, func(now time.Time) error {
		switch {
		case now.After(limit):
			return fmt.Errorf("no decision after %v, ranks %v of the world have said nothing: %w", decideTime, m.Awaited(), context.DeadlineExceeded)
		case ctx.Err() == nil:
		case over.IsZero():
			over = now.Add(more)
		case now.After(over):
			return context.Cause(ctx)
		}
		return nil
	})
}

// openAgreement returns an agreement of the members; nil: this rank votes no more. If a rank is late it may be stopped, and then nothing
// comes past it. The lock is held.
func (c *Comm) openAgreement(round uint32) *ballot.Agreement {
	m := c.e.voter.Open(ballot.Topic{Comm: c.id, Round: round}, c.ranks)
	if _, late := errors.AsType[*LateError](c.broken); m != nil && (late || len(c.leftOut) > 0) {
		m.GoStraight()
	}
	return m
}

// beginVote says what a goroutine of the program waits for, see [flight.State.Votes], until end is called.
func (e *Endpoint) beginVote(what string) (end func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.votes = append(e.votes, what)
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		i := slices.Index(e.votes, what)
		e.votes = slices.Delete(e.votes, i, i+1)
	}
}

// await waits until an agreement is decided. It calls look now and then; an error of look ends the
// wait.
func (e *Endpoint) await(ctx context.Context, m *ballot.Agreement, look func(now time.Time) error) error {
	what := "agree"
	if m.Topic.Round == 0 {
		what = "the agreement on who goes on"
	}
	defer e.beginVote(what)()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-m.Known():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case now := <-tick.C:
			since, lost := m.State()
			e.mu.Lock()
			stopped := e.stopped
			e.mu.Unlock()
			switch err := look(now); {
			case stopped:
				return ErrClosed
			case err != nil:
				return err
			case !since.IsZero() && now.Sub(since) > minorityTime:
				return fmt.Errorf("%d of %d ranks are lost, ranks %v of the world: %w", len(lost), len(m.Members), lost, ErrMinority)
			}
		}
	}
}

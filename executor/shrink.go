package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/executor/ballot"
	"github.com/tierflow/tierflow/levels"
)

// Shrunk is what has become of a communicator.
type Shrunk struct {
	Comm *Comm         // of those who go on, in the old order
	Old  []levels.Rank // by rank of Comm: its rank in the old communicator
	Lost []Loss        // ascending by rank
	// Decided is when this rank has heard who goes on.
	Decided time.Time
}

// Loss is a rank that doesn't go on.
type Loss struct {
	Rank   levels.Rank // of the old communicator
	Err    error       // as far as this rank knows; it wraps [ErrClosed] if the rank has left
	Proven bool        // its end is certain; else it was only suspected, and may hear that it is excluded
}

// forsakenTime is how long an agreement goes on whose communicator the others have given up.
const forsakenTime = 2 * time.Second

// Shrink makes a communicator of those members that live. All of them agree on who that is, and
// none has to call anything: their libraries vote. c is broken afterwards on all ranks, if it wasn't
// before. Called again it returns the same. After an error of ctx it may be called again too.
//
// Those go on who are more than half of c's members, or half with its rank 0, or all whose end isn't
// certain. Others get [ErrMinority]. Who counted as lost and hears of the decision gets
// [ErrExcluded].
func (c *Comm) Shrink(ctx context.Context) (*Shrunk, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := c.giveUp(); err != nil {
		return nil, err
	}
	m, err := c.decide(ctx, 0)
	if err != nil {
		return nil, err
	}
	return c.succeed(m)
}

// giveUp breaks the communicator if it is whole. The error is that of one that this rank has left.
func (c *Comm) giveUp() error {
	c.e.mu.Lock()
	left, whole, quit := c.isClosed(), c.broken == nil, c.quit
	c.e.mu.Unlock()
	switch {
	case quit != nil:
		return quit
	case left:
		return ErrClosed
	case whole:
		c.e.world.failComm(c, c.e.rank, ErrRevoked)
	}
	return nil
}

// succeed makes this rank's end of the communicator that was decided on, once.
func (c *Comm) succeed(m *ballot.Matter) (*Shrunk, error) {
	e, d := c.e, m.Take()
	if !d.Members.Has(int(c.me)) {
		return nil, fmt.Errorf("%d of %d ranks: %w", d.Members.Count(), c.Size(), ErrExcluded)
	}
	id, ranks := m.Next()
	next := e.Comm(id)
	if next == nil {
		var err error
		if next, err = e.Make(id, ranks); err != nil {
			if next = e.Comm(id); next == nil { // another goroutine was faster
				return nil, err
			}
		}
	}
	e.mu.Lock()
	if c.next == nil {
		c.next = next
		for _, d := range c.gone {
			next.blameStranded(d)
		}
	}
	e.release()
	c.refuseWords()
	s := &Shrunk{Comm: next, Decided: m.Heard()}
	for r := range levels.Rank(c.Size()) {
		if d.Members.Has(int(r)) {
			s.Old = append(s.Old, r)
		} else {
			s.Lost = append(s.Lost, Loss{r, c.whyGone(c.ranks[r]), d.Proven.Has(int(r))})
		}
	}
	return s, nil
}

// errUnseen is why a rank is gone whose end only others have seen.
var errUnseen = errors.New("others count it as lost")

// whyGone returns why a rank of the world doesn't go on.
func (c *Comm) whyGone(rank levels.Rank) error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	for _, f := range c.e.lost {
		if f.peer == rank {
			return f.err
		}
	}
	if slices.Contains(c.out(), rank) {
		return fmt.Errorf("left: %w", ErrClosed)
	}
	return errUnseen
}

// Agree returns whether all members that live say ok, the same on all of them. It waits until each of
// them has called it as often, died, or closed the communicator, which may be broken; one that has gone on with
// another one says no. Losses
// are no error as long as those who live may go on, see [Comm.Shrink]. When ctx ends, or [Config.CallTimeout] has passed, the rank's
// word stands all the same.
func (c *Comm) Agree(ctx context.Context, ok bool) (all bool, err error) {
	if ctx == nil {
		return false, errNoContext
	}
	e := c.e
	e.mu.Lock()
	if c.isClosed() {
		e.mu.Unlock()
		return false, ErrClosed
	}
	c.agreed++
	round := c.agreed
	m := e.openMatter(c, round)
	e.mu.Unlock()
	if m == nil {
		return false, ErrClosed
	}
	if round > 2 {
		e.voter.Forget(c.topic(round - 2)) // who is in this one has the one before
	}
	m.Begin(0, ok)
	if err := c.awaitWords(ctx, m); err != nil {
		return false, err
	}
	d := m.Take()
	if !d.Members.Has(int(c.me)) {
		return false, ErrExcluded
	}
	return d.OK, nil
}

// awaitWords waits until all have said what they were asked. It reports a stall as a call does, and has a call's time.
func (c *Comm) awaitWords(ctx context.Context, m *ballot.Matter) error {
	e, config := c.e, &c.e.world.config
	if config.CallTimeout > 0 {
		limited, cancel := e.world.limitCall(ctx)
		defer cancel()
		ctx = limited
	}
	var forsaken time.Time // the others count as having given up from then on; zero: they have not
	began, report := time.Now(), config.StallAfter
	err := e.await(ctx, m, func(now time.Time) error {
		if long := now.Sub(began); report > 0 && long >= report {
			report *= 2
			e.mu.Lock()
			e.noteStall(c, "agree", "words", long, fmt.Sprint(m.Awaited()))
			e.mu.Unlock()
		}
		switch given := e.voter.Find(c.topic(0)); {
		case given == nil || given.Decision() == nil:
		case forsaken.IsZero():
			forsaken = now.Add(forsakenTime)
		case now.After(forsaken):
			return ErrRevoked
		}
		return nil
	})
	if err != nil && err == context.Cause(ctx) {
		return fmt.Errorf("ranks %v of the world have said nothing: %w", m.Awaited(), err)
	}
	return err
}

package planner

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
)

// The errors of going on after a death, see package executor.
var (
	ErrRevoked  = executor.ErrRevoked
	ErrExcluded = executor.ErrExcluded
	ErrMinority = executor.ErrMinority
	ErrLink     = executor.ErrLink
)

// Recoverable reports whether a call has failed because of another rank, so that those who are left
// can go on after [Comm.Shrink]: one has died, left or given up, or can't be reached. An error of
// this rank itself is none, nor one of the program, such as [ErrMismatch].
func Recoverable(err error) bool {
	for _, never := range []error{ErrMismatch, ErrExcluded, ErrMinority, executor.ErrOperation} {
		if errors.Is(err, never) {
			return false
		}
	}
	_, other := errors.AsType[*PeerError](err)
	return other || errors.Is(err, ErrRevoked)
}

// Shrink returns a communicator of those ranks of c that live, in c's order. All of them agree on who that
// is. c is broken then on all ranks, if it wasn't before, and closed on this one; asked again it
// returns the same. None of the others has to call anything for that: their libraries vote. Where only a
// connection broke, between ranks that live ([ErrLink]), nobody is lost: those two connect anew.
//
// Those go on who are more than half of c's ranks, or half with its rank 0, or all whose end isn't
// certain. The others get [ErrMinority] after half a minute, or [ErrExcluded] if they hear of the
// decision. So two sides of a network that has broken never both go on. When ctx ends Shrink may be
// called again.
//
// The new communicator takes c's place: the job ends when it is closed, or the last one that was made
// so. Close is best deferred as func() { comm.Close() }() where comm is the variable that changes.
// Plans that were forced for c are left out if the other ranks can't run them.
func (c *Comm) Shrink(ctx context.Context) (next *Comm, change Change, err error) {
	if err := c.usable(ctx); err != nil {
		return nil, Change{}, fmt.Errorf("shrink: %w", err)
	}
	if next, change := c.successor(); next != nil {
		return next, change, nil
	}
	s, err := c.comm.Shrink(ctx)
	if err != nil {
		if next, change := c.successor(); next != nil { // another goroutine was faster
			return next, change, nil
		}
		return nil, Change{}, fmt.Errorf("shrink: %w", err)
	}
	c.noteWhole()
	t, err := c.topology.Sub(s.Old)
	if err != nil {
		return nil, Change{}, fmt.Errorf("shrink: %w", err)
	}
	next, change, err = c.succeed(s, t)
	if err != nil {
		return nil, Change{}, fmt.Errorf("shrink: %w", err)
	}
	if c.comm.ID() != 0 { // that of all ranks ends with the job
		_ = c.comm.Close() // it is broken
	}
	return next, change, nil
}

// successor returns what c has shrunk to; nil: nothing.
func (c *Comm) successor() (*Comm, Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next, c.change
}

// newest returns what c has become by shrinking, c if it hasn't.
func (c *Comm) newest() *Comm {
	for next, _ := c.successor(); next != nil; next, _ = c.successor() {
		c = next
	}
	return c
}

// succeed lets a new communicator take c's place, once.
func (c *Comm) succeed(s *executor.Shrunk, t *levels.Topology) (*Comm, Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		return c.next, c.change, nil
	}
	next := c.over(s.Comm, t)
	next.derived, next.lenient = c.derived, true
	if err := next.unify(); err != nil {
		return nil, Change{}, err
	}
	c.next = next
	c.change.Decided = s.Decided
	for _, r := range s.Old {
		c.change.Old = append(c.change.Old, int(r))
	}
	for _, l := range s.Lost {
		c.change.Lost = append(c.change.Lost, Loss{int(l.Rank), l.Err, l.Proven})
	}
	c.cache, c.counts, c.spare = nil, nil, spare{}
	clear(c.recent[:])
	return c.next, c.change, nil
}

// Agree returns whether all ranks that live say ok: the same answer on each of them. It waits until each
// has called it as often as this one, has died or has closed. Ranks that have shrunk the communicator before say no.
// The communicator may be broken, so a program can learn whether a call has ended well on all ranks. When ctx ends, or
// the others have shrunk the communicator meanwhile, that is the error; the rank's word stands. Calls are made one after
// the other.
func (c *Comm) Agree(ctx context.Context, ok bool) (all bool, err error) {
	if err := c.usable(ctx); err != nil {
		return false, fmt.Errorf("agree: %w", err)
	}
	if all, err = c.comm.Agree(ctx, ok); err != nil {
		return false, fmt.Errorf("agree: %w", err)
	}
	c.noteWhole()
	return all, nil
}

// noteWhole notes that all ranks that live have been heard in c's world, if c is not of some of them.
func (c *Comm) noteWhole() {
	if !c.derived {
		c.world.whole.Store(true)
	}
}

// mostAlone is how often Retry tries again though nobody was lost: an operation that panics on one rank
// panics again.
const mostAlone = 3

// Retry calls f with *c, and again with those who are left as long as its error is [Recoverable]; *c is
// what they go on with. f may have ended well on some ranks and not on others: it must bear that it
// is called again, or end with [Comm.Agree] on all ranks. After three errors in a row that have cost
// no rank Retry gives up.
func Retry(ctx context.Context, c **Comm, f func(c *Comm) error) error {
	for alone := 0; ; alone++ {
		err := f(*c)
		if !Recoverable(err) || alone == mostAlone {
			return err
		}
		next, change, failed := (*c).Shrink(ctx)
		if failed != nil {
			return fmt.Errorf("%w, after: %v", failed, err)
		}
		if *c = next; len(change.Lost) > 0 {
			alone = -1
		}
	}
}

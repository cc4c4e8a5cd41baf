package planner

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
)

// Kinds of errors around a death, for errors.Is.
var (
	ErrRevoked  = executor.ErrRevoked  // a rank has called [Comm.Revoke]
	ErrExcluded = executor.ErrExcluded // the others have gone on without this rank
	ErrMinority = executor.ErrMinority // too few ranks are within reach to go on
	ErrLink     = executor.ErrLink     // a connection between two living ranks broke
)

// Recoverable reports whether a call has failed because of another rank, and the survivors can go on
// after [Comm.Shrink]: a rank has died, left or given up, can't be reached, or was late, see [LateError]. Other errors of
// this rank itself are not recoverable, nor are those of the program, such as [ErrMismatch], or [ErrAborted].
func Recoverable(err error) bool {
	for _, never := range []error{ErrAborted, ErrMismatch, ErrExcluded, ErrMinority} {
		if errors.Is(err, never) {
			return false
		}
	}
	_, other := errors.AsType[*PeerError](err)
	late, ok := errors.AsType[*LateError](err)
	return other || ok && !late.Alone || errors.Is(err, ErrRevoked)
}

// Shrink returns a communicator of the living ranks of c, in c's order. All of them agree on the
// members. c is broken then on all ranks, if it wasn't before, and closed on this one; asked again it
// returns the same. The other ranks' programs need not call anything for it: their libraries vote. A rank whose library
// answers nothing for about ten seconds counts as lost: its process is stopped, or its host silent. If only a
// connection broke, between two living ranks ([ErrLink]), nobody is lost: the two connect anew.
//
// A group of ranks goes on if it is more than half of c's ranks, or half with its rank 0, or all but ranks
// proven dead. The others get [ErrMinority] after half a minute, or [ErrExcluded] if they hear of the
// decision. So two sides of a broken network never both go on. When ctx ends Shrink may be
// called again.
//
// The new communicator takes c's place: the job ends with the Close of the last successor.
// Close is best deferred as func() { comm.Close() }(), with the changing variable comm.
// Plans forced for c are left out if the other ranks can't run them.
func (c *Comm) Shrink(ctx context.Context) (Change, error) {
	return c.ShrinkWithout(ctx)
}

// ShrinkWithout is [Comm.Shrink], and leaves ranks of c out that may live: such as hang, see [LateError]. They hear
// [ErrExcluded] when they ask. One rank that calls it is enough, if it is the first to ask: the others' Shrink returns the same.
// Later it leaves nobody out who is agreed on as a member; the next communicator can be shrunk again.
//
// The rules for who goes on are those of Shrink, with the ranks left out as lost ones whose death is not proven. If
// the others are too few by these, the error is [ErrMinority] at once, and c is as before.
func (c *Comm) ShrinkWithout(ctx context.Context, late ...int) (Change, error) {
	if err := c.checkCall(ctx); err != nil {
		return Change{}, fmt.Errorf("shrink: %w", err)
	}
	if change := c.succession.get(); change.Comm != nil {
		return change, nil
	}
	without, err := c.others(late)
	if err != nil {
		return Change{}, fmt.Errorf("shrink: %w", err)
	}
	s, err := c.comm.Shrink(ctx, without...)
	if err != nil {
		if change := c.succession.get(); change.Comm != nil { // another goroutine was faster
			return change, nil
		}
		return Change{}, fmt.Errorf("shrink: %w", err)
	}
	c.noteWhole()
	c.world.tellLeftOut(c.comm, s.Lost)
	t, err := c.topology.Sub(s.Old)
	if err != nil {
		return Change{}, fmt.Errorf("shrink: %w", err)
	}
	change, err := c.succession.settle(func() (Change, error) { return c.succeed(s, t) })
	if err != nil {
		return Change{}, fmt.Errorf("shrink: %w", err)
	}
	if c.comm.ID() != 0 { // that of all ranks ends with the job
		_ = c.comm.Close() // it is broken
	}
	return change, nil
}

// others returns the ranks to be left out; it is an error if one is none, or this one.
func (c *Comm) others(late []int) (ranks []levels.Rank, err error) {
	for _, r := range late {
		if r < 0 || r >= c.Size() || r == c.Rank() {
			return nil, fmt.Errorf("rank %d is to be left out by rank %d; allowed are the others of 0 to %d", r, c.Rank(), c.Size()-1)
		}
		ranks = append(ranks, levels.Rank(r))
	}
	return ranks, nil
}

// succeed makes the communicator that takes c's place, and closes c for calls.
func (c *Comm) succeed(s *executor.Shrunk, t *levels.Topology) (Change, error) {
	next, err := c.wrap(base{s.Comm, t, c.registry})
	if err != nil {
		return Change{}, err
	}
	next.derived, next.lenient = c.derived, true
	change := Change{Comm: next, Decided: s.Decided}
	for _, r := range s.Old {
		change.Old = append(change.Old, int(r))
	}
	for _, l := range s.Lost {
		change.Lost = append(change.Lost, Loss{int(l.Rank), l.Err, l.Proven})
	}
	c.refuseCalls()
	return change, nil
}

// Agree returns whether all living ranks say ok: the same answer on each of them. It waits until each
// has called it as often as this one, has died or has closed. A rank that shrunk the communicator before says no.
// The communicator may be broken, so a program can learn whether a call has ended well on all ranks. It is an error
// if ctx ends, or the others have shrunk the communicator meanwhile; the rank's word stands. After a deadline, of ctx or
// [Options.CallTimeout], it is a [LateError] with the ranks that have said nothing, after which [Comm.Shrink] can be
// called. Calls are made one after the other.
func (c *Comm) Agree(ctx context.Context, ok bool) (all bool, err error) {
	if err := c.checkCall(ctx); err != nil {
		return false, fmt.Errorf("agree: %w", err)
	}
	all, err = c.comm.Agree(ctx, ok)
	switch _, late := errors.AsType[*LateError](err); {
	case late: // it says so itself
		return false, err
	case err != nil:
		return false, fmt.Errorf("agree: %w", err)
	}
	c.noteWhole()
	return all, nil
}

// noteWhole notes that all living ranks have been heard in c's world, unless c has only some of them.
func (c *Comm) noteWhole() {
	if !c.derived {
		c.world.whole.Store(true)
	}
}

// mayLeaveOut is an error unless the others of c may go on without ranks of it.
func (c *Comm) mayLeaveOut(late []int) error {
	without, err := c.others(late)
	if err != nil {
		return err
	}
	return c.comm.MayLeaveOut(without)
}

// unheard breaks c, and returns those of some ranks whose programs don't notice it soon.
func (c *Comm) unheard(ctx context.Context, late []int) (ranks []int, err error) {
	members, err := c.others(late)
	if err != nil {
		return nil, err
	}
	if members, err = c.comm.Unheard(ctx, members); err != nil {
		return nil, err
	}
	for _, r := range members {
		ranks = append(ranks, int(r))
	}
	return ranks, nil
}

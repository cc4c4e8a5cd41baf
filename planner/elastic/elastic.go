// Package elastic runs programs in jobs whose ranks change: some die or hang, others join.
//
//	err := elastic.Run(ctx, nil, func(ctx context.Context, comm *planner.Comm, change *planner.Change) error {
//		if _, err := elastic.Sync(ctx, comm, step, elastic.PartOf("weights", weights)); err != nil {
//			return err
//		}
//		… // steps, with comm.Turn(ctx) between them
//	})
//
// It stands on what package planner has for it: [planner.Comm.Agree], [planner.Comm.Shrink], [planner.Comm.Grow].
package elastic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/tasks"
)

var calls = inside.Take[planner.Comm, planner.Collective, planner.Options]()

// ErrTooFew is the error of [Run] if fewer ranks than [Options].Min are left, and no process
// joins in time.
var ErrTooFew = errors.New("too few ranks are left")

// Options are the options of [Run]. The zero value and nil are ready to use.
type Options struct {
	// Options are those of [planner.Join]. nil: the defaults.
	Options *planner.Options
	// Min is how many ranks there must be. Fewer wait for others to join. 0: one.
	Min int
	// Wait is how long they do. 0: a minute.
	Wait time.Duration
	// LeaveOut is how often in a row a rank must be found late to be left out, see [planner.Comm.ShrinkWithout]: by [planner.LateError] that
	// name it, and the last time by not noticing the error for 0.3 s, or half a [planner.Options.CallTimeout] if that is less. A
	// collective that it has come to in between ends the row. 0: two if the communicator's calls have a limit, by CallTimeout or
	// TIERFLOW_CALL_TIMEOUT, else none ever is. Below 0: none ever is.
	LeaveOut int
}

// Run joins the job and calls f with its communicator, and again whenever the ranks have changed:
// after a death with the survivors ([planner.Comm.Shrink]), and with newcomers ([planner.Comm.Grow]). f
// returns nil when the work is done, and any error of a call on the communicator as it is.
// Between steps it calls [planner.Comm.Turn], and returns its error; without these calls nobody is ever let
// in. change is nil in the first call of a process. The process may be a newcomer to a running job,
// so f begins with [Sync]: then all ranks have the newest state.
//
// If a rank counts as lost, or is in a minority, it waits to join anew, provided that tierflow run takes
// care of newcomers (--max-restarts). A rank that hangs is left out after some deadlines, see
// [Options.LeaveOut]. Run returns nil if the job ends before this process was let
// in. Other errors of f end this rank: the others go on without it. f may have ended well on
// some ranks only; a call of [planner.Comm.Agree] at the end of each step makes sure.
func Run(ctx context.Context, o *Options, f func(ctx context.Context, c *planner.Comm, change *planner.Change) error) error {
	o, err := o.check(ctx, f == nil)
	if err != nil {
		return err
	}
	for {
		c, err := planner.Join(ctx, o.Options)
		switch {
		case errors.Is(err, planner.ErrOver):
			return nil
		case err != nil:
			return err
		}
		takesIn := calls.TakesIn(c)
		if c, err = Stay(ctx, c, o, f); err == nil {
			return c.Close()
		}
		_ = c.Close() // it failed: err says so
		if !takesIn || !errors.Is(err, planner.ErrExcluded) && !errors.Is(err, planner.ErrMinority) {
			return err
		}
	}
}

// check returns the options, or what is wrong with the arguments.
func (o *Options) check(ctx context.Context, without bool) (*Options, error) {
	if o == nil {
		o = &Options{}
	}
	if err := inside.CheckFunction(ctx, without); err != nil {
		return nil, fmt.Errorf("elastic: %w", err)
	}
	if o.Min < 0 || o.Wait < 0 {
		return nil, fmt.Errorf("elastic: at least %d ranks, waiting for %v; allowed are numbers from 0 on", o.Min, o.Wait)
	}
	return o, nil
}

// Stay is [Run] on an existing communicator, such as one of goroutine ranks in a test: it calls f until that has done its
// work, or this rank can't go on. It neither joins nor closes, and returns the newest communicator, with an error as
// without one.
func Stay(ctx context.Context, c *planner.Comm, o *Options, f func(ctx context.Context, c *planner.Comm, change *planner.Change) error) (*planner.Comm, error) {
	o, err := o.check(ctx, f == nil)
	if err != nil {
		return c, err
	}
	alone := 0 // errors in a row without a lost rank, but for those of connections
	var late lateness
	namings := o.namings(c)
	err = o.fill(ctx, c)
	var change *planner.Change
	for {
		if err == nil {
			if err = f(ctx, c, change); err == nil && errors.Is(c.Err(), planner.ErrAborted) {
				err = c.Err()
			}
		}
		var became planner.Change
		var failed error
		switch {
		case err == nil:
			return c, nil
		case errors.Is(err, planner.ErrChange):
			if became, failed = c.Grow(ctx, mostNewcomers); failed != nil && c.Err() == nil {
				calls.Logger(o.Options).Warn("newcomers could not be let in", "rank", c.Rank(), "err", failed)
				became.Comm, failed = c, nil // as before
			}
		case planner.Recoverable(err) && alone <= mostAlone:
			if !errors.Is(err, planner.ErrLink) {
				alone++
			}
			hung, almost := late.note(c, err, namings)
			became, failed = o.shrink(ctx, c, hung, almost, err)
		default:
			return c, err
		}
		if failed != nil && !planner.Recoverable(failed) {
			return c, fmt.Errorf("%w, after: %w", failed, err)
		}
		if err = failed; err != nil {
			continue
		}
		if len(became.Lost)+len(became.Joined) > 0 {
			alone = 0
		}
		late.moveTo(became)
		c, change = became.Comm, &became
		err = o.fill(ctx, c)
	}
}

// shrink goes on without the dead, after an error of c, and without ranks that hang, unless the others are too few
// for that. The ranks almost are late: they hang unless their programs hear of the error soon.
func (o *Options) shrink(ctx context.Context, c *planner.Comm, hung, almost []int, err error) (planner.Change, error) {
	if len(almost) > 0 {
		unheard, err := calls.Unheard(c, ctx, almost)
		if err != nil {
			return planner.Change{}, fmt.Errorf("shrink: %w", err)
		}
		hung = append(hung, unheard...)
	}
	if len(hung) == 0 {
		return c.Shrink(ctx)
	}
	log := calls.Logger(o.Options)
	if few := calls.MayLeaveOut(c, hung); few != nil {
		log.Warn("ranks that hang can't be left out", "rank", c.Rank(), "hung", hung, "why", few)
		return c.Shrink(ctx)
	}
	log.Warn("ranks that hang are left out", "rank", c.Rank(), "hung", hung, "after", err)
	return c.ShrinkWithout(ctx, hung...)
}

// mostNewcomers bounds how many join at once.
const mostNewcomers = 1 << 10

// fillLook is the time from one look for waiting processes to the next, while the ranks are too few.
const fillLook = 50 * time.Millisecond

// fill waits until enough processes wait to join, if the ranks are too few: the error is planner.ErrChange then.
func (o *Options) fill(ctx context.Context, c *planner.Comm) error {
	if c.Size() >= o.Min {
		return nil
	}
	wait := cmp.Or(o.Wait, time.Minute)
	for end := time.Now().Add(wait); ; {
		votes := []int64{int64(c.Waiting()), 0}
		if time.Now().After(end) {
			votes[1] = 1
		}
		if err := planner.Allreduce(ctx, c, votes, votes, tasks.Max); err != nil {
			return err
		}
		switch {
		case int64(c.Size())+votes[0] >= int64(o.Min):
			return planner.ErrChange
		case votes[1] > 0:
			return fmt.Errorf("%d of at least %d after %v: %w", c.Size(), o.Min, wait, ErrTooFew)
		}
		select {
		case <-time.After(fillLook):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// mostAlone is how often in a row a call is tried again without a lost rank: an operation panicking on one rank
// panics again.
const mostAlone = 3

// Retry calls f with c, and again with the survivors' communicator, as long as f's error is [planner.Recoverable].
// It returns the communicator of f's last call, with an error as without one. f may have ended well on some
// ranks and not on others: it must bear to be called again, or end with [planner.Comm.Agree] on all ranks. After
// three errors in a row without a lost rank Retry gives up.
func Retry(ctx context.Context, c *planner.Comm, f func(c *planner.Comm) error) (*planner.Comm, error) {
	for alone := 0; ; alone++ {
		err := f(c)
		if !planner.Recoverable(err) || alone == mostAlone {
			return c, err
		}
		change, failed := c.Shrink(ctx)
		if failed != nil {
			return c, fmt.Errorf("%w, after: %v", failed, err)
		}
		if c = change.Comm; len(change.Lost) > 0 {
			alone = -1
		}
	}
}

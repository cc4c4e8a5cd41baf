package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/tasks"
)

// ErrTooFew is the error of [Elastic] if fewer ranks than [ElasticOptions].Min are left, and no process
// joins in time.
var ErrTooFew = errors.New("too few ranks are left")

// ElasticOptions are the options of [Elastic]. The zero value and nil are ready to use.
type ElasticOptions struct {
	// Options are those of Join. nil: the defaults.
	Options *Options
	// Min is how many ranks there must be. Fewer wait for others to join. 0: one.
	Min int
	// Wait is how long they do. 0: a minute.
	Wait time.Duration
	// LeaveOut is how often in a row a rank must be found late to be left out, see [Comm.ShrinkWithout]: by [LateError] that
	// name it, and the last time by not noticing the error for 0.3 s, or half a [Options.CallTimeout] if that is less. A
	// collective that it has come to in between ends the row. 0: two if calls have a limit, by CallTimeout or
	// TIERFLOW_CALL_TIMEOUT, else none ever is. Below 0: none ever is.
	LeaveOut int
}

// Elastic joins the job and calls f with its communicator, and again whenever the ranks have changed:
// after a death with the survivors ([Comm.Shrink]), and with newcomers ([Comm.Grow]). f
// returns nil when the work is done, and any error of a call on the communicator as it is.
// Between steps it calls [Comm.Turn], and returns its error; without these calls nobody is ever let
// in. change is nil in the first call of a process. The process may be a newcomer to a running job,
// so f begins with [Sync]: then all ranks have the newest state.
//
// If a rank counts as lost, or is in a minority, it waits to join anew, provided that tierflow run takes
// care of newcomers (--max-restarts). A rank that hangs is left out after some deadlines, see
// [ElasticOptions.LeaveOut]. Elastic returns nil if the job ends before this process was let
// in. Other errors of f end this rank: the others go on without it. f may have ended well on
// some ranks only; a call of [Comm.Agree] at the end of each step makes sure.
func Elastic(ctx context.Context, o *ElasticOptions, f func(ctx context.Context, c *Comm, change *Change) error) error {
	if err := checkFunction(ctx, f == nil); err != nil {
		return fmt.Errorf("elastic: %w", err)
	}
	if o == nil {
		o = &ElasticOptions{}
	}
	if o.Min < 0 || o.Wait < 0 {
		return fmt.Errorf("elastic: at least %d ranks, waiting for %v; allowed are numbers from 0 on", o.Min, o.Wait)
	}
	for {
		c, err := Join(ctx, o.Options)
		switch {
		case errors.Is(err, ErrOver):
			return nil
		case err != nil:
			return err
		}
		takesIn := c.world.lobby() != nil
		if c, err = o.stay(ctx, c, f); err == nil {
			return c.Close()
		}
		_ = c.Close() // it failed: err says so
		if !takesIn || !errors.Is(err, ErrExcluded) && !errors.Is(err, ErrMinority) {
			return err
		}
	}
}

// stay calls f until it has done its work, or this rank can't go on. It returns the newest communicator.
func (o *ElasticOptions) stay(ctx context.Context, c *Comm, f func(ctx context.Context, c *Comm, change *Change) error) (*Comm, error) {
	alone := 0 // errors in a row without a lost rank, but for those of connections
	var late lateness
	namings := o.namings()
	err := o.fill(ctx, c)
	var change *Change
	for {
		if err == nil {
			if err = f(ctx, c, change); err == nil && errors.Is(c.comm.Err(), ErrAborted) {
				err = c.comm.Err()
			}
		}
		var became Change
		var failed error
		switch {
		case err == nil:
			return c, nil
		case errors.Is(err, ErrChange):
			if became, failed = c.Grow(ctx, mostNewcomers); failed != nil && c.comm.Err() == nil {
				o.Options.logger().Warn("newcomers could not be let in", "rank", c.Rank(), "err", failed)
				became.Comm, failed = c, nil // as before
			}
		case Recoverable(err) && alone <= mostAlone:
			if !errors.Is(err, ErrLink) {
				alone++
			}
			hung, almost := late.note(c, err, namings)
			became, failed = o.shrink(ctx, c, hung, almost, err)
		default:
			return c, err
		}
		if failed != nil && !Recoverable(failed) {
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
func (o *ElasticOptions) shrink(ctx context.Context, c *Comm, hung, almost []int, err error) (Change, error) {
	if len(almost) > 0 {
		unheard, err := c.unheard(ctx, almost)
		if err != nil {
			return Change{}, fmt.Errorf("shrink: %w", err)
		}
		hung = append(hung, unheard...)
	}
	if len(hung) == 0 {
		return c.Shrink(ctx)
	}
	log := o.Options.logger()
	if few := c.mayLeaveOut(hung); few != nil {
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

// fill waits until enough processes wait to join, if the ranks are too few: the error is ErrChange then.
func (o *ElasticOptions) fill(ctx context.Context, c *Comm) error {
	if c.Size() >= o.Min {
		return nil
	}
	wait := cmp.Or(o.Wait, time.Minute)
	for end := time.Now().Add(wait); ; {
		votes := []int64{int64(c.Waiting()), 0}
		if time.Now().After(end) {
			votes[1] = 1
		}
		if err := Allreduce(ctx, c, votes, votes, tasks.Max); err != nil {
			return err
		}
		switch {
		case int64(c.Size())+votes[0] >= int64(o.Min):
			return ErrChange
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

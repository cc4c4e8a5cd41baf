package planner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
)

// without closes the communicator of a rank, and lets the others shrink until they are without it.
func without(ctx context.Context, c *planner.Comm, gone int) (*planner.Comm, error) {
	if c.Rank() == gone {
		return nil, c.Close()
	}
	for size := c.Size(); ; {
		err := sum(ctx, c)
		if err == nil && c.Size() < size {
			return c, nil
		}
		if !planner.Recoverable(err) {
			return nil, fmt.Errorf("error %w, want one after which ranks go on", err)
		}
		old := c.Size()
		change, err := c.Shrink(ctx)
		if err != nil {
			return nil, err
		}
		if again, err := c.Shrink(ctx); err != nil || again.Comm != change.Comm {
			return nil, fmt.Errorf("a second shrink: %v, %w", again, err)
		}
		if len(change.Old)+len(change.Lost) != old || slices.ContainsFunc(change.Lost, func(l planner.Loss) bool { return l.Err == nil || !l.Proven }) {
			return nil, fmt.Errorf("of %d ranks %v, lost %v", old, change.Old, change.Lost)
		}
		if err := c.Close(); err != nil { // closes nothing that is in use
			return nil, err
		}
		c = change.Comm
	}
}

// Those who are left go on with unequal nodes, whoever leaves, on the communicator of all ranks and on others.
func TestShrink(t *testing.T) {
	for _, gone := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(gone), func(t *testing.T) {
			t.Parallel()
			local := localComms(t, "2x2", nil)
			for _, comms := range [][]*planner.Comm{local, joinProcesses(t, 4, 2, nil)} {
				noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
					dup, err := c.Dup(ctx)
					if err != nil {
						return err
					}
					rest, err := without(ctx, dup, gone)
					if err == nil {
						err = sum(ctx, c) // on which nobody has left
					}
					if planner.Recoverable(err) { // who was faster has given it up since
						err = nil
					}
					if err == nil && rest != nil {
						err = rest.Close()
					}
					if err != nil {
						return err
					}
					if rest, err = without(ctx, c, gone); err != nil || rest == nil {
						return err
					}
					if rest.Size() != 3 || rest.Topology().Size() != 3 {
						return fmt.Errorf("%d ranks on %v", rest.Size(), rest.Topology())
					}
					return rest.Close()
				}))
			}
		})
	}
}

// Forced plans that the ranks that are left can't run are left out, and Explain says so.
func TestShrinkForced(t *testing.T) {
	comms := localComms(t, "2x2", &planner.Options{Plan: "allgather:shape=flat,i=nbc/neighbor;bcast:i=adapt/chain"})
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		rest, err := without(ctx, c, 3)
		if err != nil || rest == nil {
			return err
		}
		defer rest.Close()
		numbers := make([]float32, 4096)
		all, err := planner.PrepareAllgather(ctx, rest, numbers, make([]float32, 3*4096))
		if err != nil {
			return err
		}
		if text := all.Explain(); !strings.Contains(text, "but the ranks that are left can't run it") {
			return fmt.Errorf("not said:\n%s", text)
		}
		one, err := planner.PrepareBcast(ctx, rest, numbers, 0)
		if err != nil {
			return err
		}
		if text := one.Explain(); !strings.Contains(text, "forced by Options.Plan: i=adapt/chain\n") {
			return fmt.Errorf("not said:\n%s", text)
		}
		return nil
	}))
}

// Retry goes on with those who are left.
func TestRetry(t *testing.T) {
	comms := localComms(t, "1x3", nil)
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == 2 {
			return c.Close()
		}
		defer func() { c.Close() }()
		calls := 0
		var err error
		if c, err = elastic.Retry(ctx, c, func(c *planner.Comm) error {
			calls++
			return errors.Join(planner.Barrier(ctx, c), planner.Barrier(ctx, c))
		}); err != nil || c.Size() != 2 || calls < 2 {
			return fmt.Errorf("%d calls, %d ranks: %w", calls, c.Size(), err)
		}
		return nil
	}))
}

// Retry gives up where nobody is lost.
func TestRetryInVain(t *testing.T) {
	comms := localComms(t, "1x2", nil)
	again := errors.New("again")
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		defer func() { c.Close() }()
		calls, last := 0, c
		var err error
		c, err = elastic.Retry(ctx, c, func(c *planner.Comm) error {
			calls, last = calls+1, c
			return &planner.PeerError{Err: again}
		})
		if !errors.Is(err, again) || calls != 4 || c != last {
			return fmt.Errorf("%d calls, the last with %p, and %p is returned: %w", calls, last, c, err)
		}
		return nil
	}))
}

// An error is recoverable when it is another rank's.
func TestRecoverable(t *testing.T) {
	peer := &planner.PeerError{Rank: 1, Err: errors.New("died")}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{peer, true},
		{fmt.Errorf("%w: %w", planner.ErrBroken, peer), true},
		{&planner.PeerError{Rank: 1, Err: planner.ErrClosed}, true},
		{&planner.PeerError{Rank: 1, Err: context.Canceled}, true},
		{planner.ErrRevoked, true},
		{fmt.Errorf("%w: %w", planner.ErrBroken, &planner.LateError{Request: "barrier", Err: context.DeadlineExceeded}), true},
		{&planner.LateError{Request: "receive from rank 1, tag 5", Alone: true, Err: context.DeadlineExceeded}, false},
		{&planner.PeerError{Rank: 1, Err: fmt.Errorf("%w: full", planner.ErrAborted)}, false},
		{planner.ErrClosed, false},
		{context.Canceled, false},
		{&planner.MismatchError{}, false},
		{fmt.Errorf("shrink: %w", planner.ErrExcluded), false},
		{fmt.Errorf("shrink: %w", planner.ErrMinority), false},
	} {
		if got := planner.Recoverable(test.err); got != test.want {
			t.Errorf("%v: %t, want %t", test.err, got, test.want)
		}
	}
}

package planner_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
)

// A deferred Close tells the others why its goroutine is unwound, even if the panic is
// recovered further up; one that a function calls on its way back tells them nothing.
func TestCloseWhileUnwound(t *testing.T) {
	recovered := func(f func()) func(*planner.Comm) {
		return func(c *planner.Comm) {
			defer func() { _ = recover() }()
			defer c.Close()
			f()
		}
	}
	for name, test := range map[string]struct {
		end  func(c *planner.Comm)
		want string // that the others say
	}{
		"a panic":        {recovered(func() { panic("boom") }), "rank 1 panicked: boom"},
		"an error":       {recovered(func() { panic(errors.New("boom")) }), "rank 1 panicked: boom"},
		"runtime.Goexit": {exitAfter(func(c *planner.Comm) { defer c.Close(); runtime.Goexit() }), "rank 1 ended its goroutine"},
		"a helper": {func(c *planner.Comm) {
			defer func() { _ = recover() }()
			defer func() { _ = recover(); func() { func() { defer c.Close() }() }() }()
			panic("boom")
		}, "rank 1 has closed, it won't come to barrier #0"},
		"nothing": {func(c *planner.Comm) { defer c.Close() }, "rank 1 has closed, it won't come to barrier #0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local := localComms(t, "2x2", nil)
			for _, comms := range [][]*planner.Comm{local, joinProcesses(t, 4, 2, nil)} {
				errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
					if c.Rank() == 1 {
						test.end(c)
						return nil
					}
					err := planner.Barrier(ctx, c)
					if closed := c.Close(); closed != nil {
						return closed
					}
					return err
				})
				for r, err := range errs {
					unwound := strings.HasPrefix(test.want, "rank 1 has closed") != errors.Is(err, planner.ErrUnwound)
					if r != 1 && (err == nil || !strings.Contains(err.Error(), test.want) || !unwound) {
						t.Errorf("rank %d: %v, want %q", r, err, test.want)
					}
				}
				closeAll(t, comms)
			}
		})
	}
}

// exitAfter calls f, which ends its goroutine, on one of its own.
func exitAfter(f func(c *planner.Comm)) func(c *planner.Comm) {
	return func(c *planner.Comm) {
		over := make(chan struct{})
		go func() { defer close(over); f(c) }()
		<-over
	}
}

// Ranks that wait, and ranks that call later, are told who has revoked and why.
func TestRevoke(t *testing.T) {
	why := errors.New("the loader is out of data")
	local := localComms(t, "2x2", nil)
	for _, comms := range [][]*planner.Comm{local, joinProcesses(t, 4, 2, nil)} {
		errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
			if c.Rank() == 2 {
				if err := c.Revoke(nil); err == nil {
					t.Error("revoked without a reason")
				}
				if err := c.Revoke(why); err != nil {
					t.Error(err)
				}
			}
			first := planner.Barrier(ctx, c)
			if again := planner.Barrier(ctx, c); !errors.Is(again, planner.ErrBroken) {
				t.Errorf("rank %d: a call afterwards: %v", c.Rank(), again)
			}
			return first
		})
		for r, err := range errs {
			if r == 2 && !errors.Is(err, why) || r != 2 && (err == nil || !strings.Contains(err.Error(), "rank 2") || !strings.Contains(err.Error(), why.Error())) {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		closeAll(t, comms)
	}
}

// Abort ends the calls of all ranks on all communicators with the reason, for good, and the aborting rank waits for nobody.
func TestAbort(t *testing.T) {
	errStop := errors.New("the disk is full")
	for _, topology := range []string{"2x2", "1x2", "processes"} {
		var comms []*planner.Comm
		if topology == "processes" {
			comms = joinProcesses(t, 4, 2, &planner.Options{CloseTimeout: patience})
		} else {
			comms = localComms(t, topology, nil)
		}
		aborted := make(chan struct{})
		var split sync.WaitGroup
		split.Add(len(comms))
		noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
			half, err := c.Split(ctx, c.Rank()%2, 0)
			split.Done()
			if err != nil {
				return err
			}
			split.Wait() // a rank may be through while others are in it
			if c.Rank() == 1 {
				defer close(aborted)
				if err := half.Abort(nil); err == nil {
					return errors.New("aborted without a reason")
				}
				if err := half.Abort(errStop); !errors.Is(err, errStop) || !errors.Is(err, planner.ErrAborted) {
					return err
				}
				if err := planner.Barrier(ctx, c); !errors.Is(err, errStop) {
					return err
				}
				return c.Close()
			}
			c, err = elastic.Retry(ctx, c, func(c *planner.Comm) error { return planner.Barrier(ctx, c) })
			if text := fmt.Sprint(err); !errors.Is(err, planner.ErrAborted) || planner.Recoverable(err) || !strings.Contains(text, "rank 1 aborted: the disk is full") {
				return fmt.Errorf("heard %w", err)
			}
			<-aborted
			if err := half.Close(); err != nil {
				return err
			}
			return c.Close()
		}))
	}
}

// A process whose function fails says why, and waits for nobody.
func TestEachFailsAtOnce(t *testing.T) {
	comms := joinProcesses(t, 3, 2, &planner.Options{CloseTimeout: patience})
	over := make(chan struct{})
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		err := planner.Each(ctx, []*planner.Comm{c}, func(ctx context.Context, c *planner.Comm) error {
			if c.Rank() == 1 {
				return errors.New("the disk is full")
			}
			err := planner.Barrier(ctx, c)
			<-over
			return err
		})
		want := "rank 1 failed: the disk is full"
		if c.Rank() == 1 {
			close(over)
			want = "the disk is full"
		}
		if text := fmt.Sprint(err); text != want && !strings.HasSuffix(text, want) {
			return fmt.Errorf("%w, want %s", err, want)
		}
		return nil
	}))
}

// Without a topology Run joins the job of its process: one rank, where nobody has started it.
func TestRunAlone(t *testing.T) {
	size := 0
	if err := planner.Run(t.Context(), "", nil, func(ctx context.Context, c *planner.Comm) error {
		size = c.Size()
		return sum(ctx, c)
	}); err != nil || size != 1 {
		t.Errorf("%d ranks: %v", size, err)
	}
	if err := planner.Run(t.Context(), "", nil, nil); err == nil {
		t.Error("ran without a function")
	}
}

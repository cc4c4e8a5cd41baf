package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// onBothKinds runs f on goroutine ranks and on processes, all of which must succeed and
// close well.
func onBothKinds(t *testing.T, nodes, perNode int, o *planner.Options, f func(ctx context.Context, c *planner.Comm) error) {
	t.Helper()
	t.Run("goroutines", func(t *testing.T) {
		allSucceed(t, localComms(t, fmt.Sprintf("%dx%d", nodes, perNode), o), f)
	})
	t.Run("processes", func(t *testing.T) {
		processes(t, nodes*perNode, perNode, o, f)
	})
}

// Goroutines of a rank make communicators at the same time, each from one of its own:
// what they sum up on them never mixes.
func TestCommunicatorsMadeAtOnce(t *testing.T) {
	onBothKinds(t, 2, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		const makers, rounds = 3, 30
		var parents [makers]*planner.Comm
		for i := range parents {
			var err error
			if parents[i], err = c.Dup(ctx); err != nil {
				return err
			}
		}
		errs := make([]error, makers)
		var all sync.WaitGroup
		for i, parent := range parents {
			all.Go(func() {
				for round := 0; round < rounds && errs[i] == nil; round++ {
					errs[i] = sumOnChild(ctx, parent, int64(1000*i+round), round%2 == 0)
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
}

// sumOnChild makes a communicator, of all ranks or of half of them, and adds up on it.
func sumOnChild(ctx context.Context, parent *planner.Comm, value int64, halves bool) error {
	color := 0
	if halves {
		color = parent.Rank() % 2
	}
	d, err := parent.Split(ctx, color, 0)
	if err != nil {
		return err
	}
	x := []int64{value + int64(color)}
	want := x[0] * int64(d.Size())
	if err := planner.Allreduce(ctx, d, x, x, tasks.Sum); err != nil {
		return err
	}
	if x[0] != want {
		return fmt.Errorf("rank %d: sum %d, want %d", parent.Rank(), x[0], want)
	}
	return d.Close()
}

// Calls that only look alike are a mismatch on all ranks. The error says what differs.
func TestLookalikes(t *testing.T) {
	user := func(name string, commutative bool) tasks.Op {
		return tasks.UserOp(name, commutative, func(a, b int64) int64 { return max(a, b) })
	}
	allreduce := func(op tasks.Op) func(ctx context.Context, c *planner.Comm) error {
		return func(ctx context.Context, c *planner.Comm) error {
			x := make([]int64, 3*c.Size())
			return planner.Allreduce(ctx, c, x, x, op)
		}
	}
	split := func(ctx context.Context, c *planner.Comm) error {
		_, err := c.Split(ctx, 0, 0)
		return err
	}
	dup := func(ctx context.Context, c *planner.Comm) error {
		_, err := c.Dup(ctx)
		return err
	}
	other := func(plan string) func(ctx context.Context, c *planner.Comm) error {
		return func(ctx context.Context, c *planner.Comm) error {
			d, err := c.DupWith(ctx, plan)
			if err != nil {
				return err
			}
			return allreduce(tasks.Sum)(ctx, d)
		}
	}
	for name, test := range map[string]struct {
		one, others func(ctx context.Context, c *planner.Comm) error
		say         []string
	}{
		"built-in and user":    {allreduce(user("sum", true)), allreduce(tasks.Sum), []string{"with operation sum", `operation "sum" i64 commutative`}},
		"order":                {allreduce(user("f", true)), allreduce(user("f", false)), []string{`"f" i64 commutative`, `"f" i64 non-commutative`}},
		"split and allreduce":  {split, allreduce(tasks.Sum), []string{"split", "allreduce 12 i64 sum"}},
		"split and dup":        {split, dup, []string{"split", "dup"}},
		"dup and any":          {dup, func(ctx context.Context, c *planner.Comm) error { _, err := c.Any(ctx, true); return err }, []string{"dup", "any"}},
		"other plans per rank": {other("shape=han,fs=1KiB"), other("shape=han,fs=2KiB"), []string{"with plan shape=han,fs=1KiB", "with plan shape=han,fs=2KiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			onBothKinds(t, 2, 2, nil, func(ctx context.Context, c *planner.Comm) error {
				f := test.others
				if c.Rank() == 2 {
					f = test.one
				}
				err := f(ctx, c)
				for err == nil { // it may end together with the message that shows the mismatch
					err = planner.Barrier(ctx, c)
				}
				if !errors.Is(err, planner.ErrMismatch) {
					return fmt.Errorf("error %w, want a mismatch", err)
				}
				for _, part := range test.say {
					if !strings.Contains(err.Error(), part) {
						return fmt.Errorf("error %w lacks %q", err, part)
					}
				}
				return nil
			})
		})
	}
}

// A Split that one rank gives up at any moment leaves nobody waiting on the communicator
// that the others may have made.
func TestCancelledSplit(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	onBothKinds(t, 2, 2, &planner.Options{StallAfter: -1}, func(ctx context.Context, c *planner.Comm) error {
		for round := range rounds {
			parent, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			mine, cancel := context.WithCancel(ctx)
			if c.Rank() == round%c.Size() {
				time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, cancel)
			}
			child, err := parent.Split(mine, 0, 0)
			for i := 0; i < 3 && err == nil; i++ {
				err = planner.Barrier(ctx, child)
			}
			cancel()
			if errors.Is(err, errHangs) {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if child != nil {
				_ = child.Close() // it may be broken
			}
			_ = parent.Close()
		}
		return nil
	})
}

// endsBy returns what is wrong if err isn't because of why.
func endsBy(err, why error) error {
	if !errors.Is(err, why) {
		return fmt.Errorf("error %w, want %w", err, why)
	}
	return nil
}

// Ranks whose communicator goes on after another one has left everything, tired of waiting
// for them, still hear of each other's failures.
func TestFailureAfterOneHasLeft(t *testing.T) {
	comms := joinProcesses(t, 4, 4, &planner.Options{CloseTimeout: 200 * time.Millisecond, StallAfter: -1})
	var left sync.WaitGroup
	left.Add(1)
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		color := 0
		if c.Rank() == 0 { // through which all others hear of each other
			color = planner.NoColor
		}
		d, err := c.Split(ctx, color, 0)
		if err != nil {
			return err
		}
		switch c.Rank() {
		case 0:
			defer left.Done()
			if err := c.Close(); err == nil {
				return errors.New("it waited for nobody")
			}
			return nil
		case 3:
			left.Wait()
			mine, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			return endsBy(planner.Send(mine, d, 0, 1, make([]byte, 1<<20)), context.DeadlineExceeded)
		}
		err = planner.Barrier(ctx, d)
		if c.Rank() == 1 { // for which the last one has waited in vain
			return endsBy(err, context.DeadlineExceeded)
		}
		return blames(err, 0)
	}))
	for _, c := range comms {
		_ = c.Close() // ranks that are cut off wait for each other in vain
	}
}

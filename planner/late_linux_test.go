package planner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
)

// lateRounds is how often each size is tried: the counts of the long test take minutes.
func lateRounds() int {
	if os.Getenv("TIERFLOW_TEST_LONG") != "" {
		return 100
	}
	return 5
}

// One rank of 4, and of 16, is late, with the transports of processes and on goroutines: the
// errors of all ranks name it and what it is in, and no other rank.
func TestDeadlinesNameTheLate(t *testing.T) {
	t.Parallel() // it mostly waits
	kinds := map[string]func(n int) []*planner.Comm{
		"processes":  func(n int) []*planner.Comm { return joinProcesses(t, n, (n+1)/2, nil) },
		"goroutines": func(n int) []*planner.Comm { return localComms(t, fmt.Sprintf("2x%d", n/2), nil) },
	}
	for kind, make := range kinds {
		for _, n := range []int{4, 16} {
			t.Run(fmt.Sprintf("%s/%d", kind, n), func(t *testing.T) {
				t.Parallel()
				right, wrong := 0, 0
				for round := range lateRounds() {
					for r, err := range lateRound(t, make(n), round%n) {
						if r == round%n && err == nil {
							continue // it had all it needed from the others before it heard
						}
						if why := namesLate(err, round%n); why != nil {
							wrong++
							t.Errorf("round %d, rank %d: %v", round, r, why)
						} else {
							right++
						}
					}
				}
				t.Logf("%d rounds: %d errors name the late rank alone, %d don't", lateRounds(), right, wrong)
			})
		}
	}
}

// lateRound lets all ranks but one call with a deadline. That one comes when all have
// failed.
func lateRound(t *testing.T, comms []*planner.Comm, late int) []error {
	var all, others sync.WaitGroup
	all.Add(len(comms))
	others.Add(len(comms) - 1)
	errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
		err := sum(ctx, c)
		all.Done()
		if err != nil {
			return fmt.Errorf("in time: %w", err)
		}
		all.Wait() // a rank may be through with a call before another one has heard of it
		if c.Rank() == late {
			others.Wait()
			return sum(ctx, c)
		}
		defer others.Done()
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		return sum(ctx, c)
	})
	closeAll(t, comms)
	return errs
}

// namesLate is an error unless err is of a deadline and names a rank and no other one.
func namesLate(err error, late int) error {
	if !planner.Recoverable(err) {
		return fmt.Errorf("%w: those who have come could go on", err)
	}
	var why *planner.LateError
	if !errors.As(err, &why) || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%v, want a LateError by a deadline", err)
	}
	var peer *planner.PeerError
	if errors.As(err, &peer) && int(peer.Rank) != late {
		return fmt.Errorf("%v blames rank %d", err, peer.Rank)
	}
	for r := range 16 {
		if strings.Contains(err.Error(), fmt.Sprintf("rank %d ", r)) != (r == late) {
			return fmt.Errorf("%v: want rank %d named and no other", err, late)
		}
	}
	for _, part := range []string{"allreduce 1 i64 sum: ", "is in no call after allreduce 1 i64 sum #0", ", at planner_test.lateRound"} {
		if !strings.Contains(err.Error(), part) {
			return fmt.Errorf("%v lacks %q", err, part)
		}
	}
	return nil
}

// Ranks of processes that all receive from the next one hear that this is a deadlock.
func TestProcessesDeadlock(t *testing.T) {
	t.Parallel() // it mostly waits
	const n = 4
	comms := joinProcesses(t, n, 2, &planner.Options{CallTimeout: 4 * time.Second}) // all have begun long before
	for r, err := range each(comms, func(ctx context.Context, c *planner.Comm) error {
		if err := planner.Barrier(ctx, c); err != nil {
			return err
		}
		_, err := planner.Recv(ctx, c, (c.Rank()+1)%n, 7, make([]int32, 1))
		return err
	}) {
		var why *planner.LateError
		if !errors.As(err, &why) || len(why.Circle) != n || !strings.Contains(err.Error(), "deadlock: rank 0 is in receive from rank 1, tag 7, for ") {
			t.Errorf("rank %d: %v, want the circle of all", r, err)
		}
	}
	closeAll(t, comms)
}

// The environment gives a limit for calls too.
func TestCallTimeoutVariable(t *testing.T) {
	t.Setenv(env.CallTimeout, "100ms")
	comms := localComms(t, "2", nil)
	_, err := planner.Recv(t.Context(), comms[0], 1, 0, make([]byte, 1))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the limit of 100ms for a call") {
		t.Errorf("error %v", err)
	}
	closeAll(t, comms)
	t.Setenv(env.CallTimeout, "soon")
	wantError(t, "a limit of soon", second(planner.Local("2", nil)), `TIERFLOW_CALL_TIMEOUT="soon"`)
}

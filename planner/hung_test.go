package planner_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/planner"
)

// inHungBubble calls f on goroutine ranks in a bubble whose calls have a limit, and closes the communicators that it returns. Rank 1
// hangs where it calls hang, until the others have returned.
func inHungBubble(t *testing.T, topology string, limit time.Duration, f func(ctx context.Context, c *planner.Comm, hang func()) (*planner.Comm, error)) {
	synctest.Test(t, func(t *testing.T) {
		comms, err := planner.Local(topology, &planner.Options{NoDump: true, CallTimeout: limit})
		if err != nil {
			t.Fatal(err)
		}
		var all, others sync.WaitGroup
		others.Add(len(comms) - 1)
		for rank, c := range comms {
			all.Go(func() {
				if rank != 1 {
					defer others.Done()
				}
				c, err := f(t.Context(), c, others.Wait)
				if err == nil {
					err = c.Close()
				}
				if err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		all.Wait()
	})
}

// A rank that hangs in its program holds up no Shrink, however often the others shrink: its library votes for it, on
// communicators too that its program has never made. A call without it names it, and so does Agree.
func TestShrinkWithAHungRank(t *testing.T) {
	const limit, rounds = 2 * time.Second, 3
	for _, hangs := range []string{"before the call", "before Agree", "before Shrink", "after Shrink"} {
		t.Run(hangs, func(t *testing.T) {
			inHungBubble(t, "1x3", limit, func(ctx context.Context, c *planner.Comm, hang func()) (*planner.Comm, error) {
				hung := false
				at := func(point string) {
					if c.Rank() == 1 && point == hangs && !hung {
						hung = true
						hang()
					}
				}
				for round := range rounds {
					at("before the call")
					err := planner.Barrier(ctx, c)
					at("before Agree")
					if err == nil {
						_, err = c.Agree(ctx, true)
					}
					at("before Shrink")
					if whole := round == 0 && (hangs == "before Shrink" || hangs == "after Shrink"); whole && err != nil || !whole && !hung && blames(err, 1) != nil {
						return nil, fmt.Errorf("round %d: %w", round, err)
					}
					began := time.Now()
					next, change, err := c.Shrink(ctx)
					if err != nil || len(change.Lost) > 0 || time.Since(began) > time.Second {
						return nil, fmt.Errorf("round %d: after %v without %v: %w", round, time.Since(began), change.Lost, err)
					}
					c = next
					at("after Shrink")
				}
				return c, nil
			})
		})
	}
}

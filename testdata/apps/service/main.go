//go:build unix

// Command service takes a step each five milliseconds, for ever, with the ranks that live:
//
//	tierflow run -n 4 --min 2 --max-restarts 1000 -- service
//
// To see what becomes of a rank that misbehaves, send it the signals of [moods].
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	limit := flag.Duration("limit", time.Second, "the limit of calls")
	flag.Parse()
	m := newMoods(*limit)
	fmt.Printf("slot %s has pid %d\n", os.Getenv("TIERFLOW_RANK"), os.Getpid())
	state := []float64{1, 0} // the next step, and the sum of those before
	log.Fatal(elastic.Run(context.Background(), &elastic.Options{Options: &planner.Options{CallTimeout: *limit}}, func(ctx context.Context, c *planner.Comm, _ *planner.Change) error {
		if _, err := elastic.Sync(ctx, c, uint64(state[0]), elastic.PartOf("state", state)); err != nil {
			return err
		}
		for {
			if err := c.Turn(ctx); err != nil { // somebody wants in
				return err
			}
			m.think()
			sum := slices.Repeat(state[:1], 5000)
			err := planner.Allreduce(ctx, c, sum, sum, tasks.Sum)
			if all, failed := c.Agree(ctx, err == nil); !all { // on all ranks that live
				return cmp.Or(err, failed, planner.ErrRevoked)
			}
			if want := state[0] * float64(c.Size()); slices.Min(sum) != want || slices.Max(sum) != want || state[1] != state[0]*(state[0]-1)/2 {
				log.Fatalf("WRONG in step %v: %v of %d ranks, %v before", state[0], sum[0], c.Size(), state[1])
			}
			state[1] += state[0]
			state[0]++
			if c.Rank() == 0 {
				fmt.Printf("step %v with %d ranks\n", state[0], c.Size())
			}
		}
	}))
}

//go:build unix

// Command service takes a step each five milliseconds, for ever, with the ranks that live:
//
//	tierflow run -n 4 --min 2 --max-restarts 1000 -- service
//
// To see what becomes of a rank that misbehaves, signals make it hang in its next step: SIGUSR1 for good, SIGUSR2 for a third
// of the limit of calls, SIGALRM four times as long as that limit. SIGWINCH makes its steps a hundred times as long.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	limit := flag.Duration("limit", time.Second, "the limit of calls")
	flag.Parse()
	var hang, think atomic.Int64
	think.Store(int64(5 * time.Millisecond))
	go misbehave(&hang, &think, *limit)
	fmt.Printf("slot %s has pid %d\n", os.Getenv("TIERFLOW_RANK"), os.Getpid())
	state := []float64{1, 0} // the next step, and the sum of those before
	log.Fatal(planner.Elastic(context.Background(), &planner.ElasticOptions{Options: &planner.Options{CallTimeout: *limit}}, func(ctx context.Context, c *planner.Comm, _ *planner.Change) error {
		if _, err := planner.Sync(ctx, c, uint64(state[0]), planner.PartOf("state", state)); err != nil {
			return err
		}
		for {
			if err := c.Turn(ctx); err != nil { // somebody wants in
				return err
			}
			time.Sleep(time.Duration(think.Load()))
			if d := time.Duration(hang.Swap(0)); d > 0 {
				time.Sleep(d)
				fmt.Printf("pid %d is back\n", os.Getpid())
			}
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

// misbehave does what signals ask for.
func misbehave(hang, think *atomic.Int64, limit time.Duration) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT)
	for s := range signals {
		switch s {
		case syscall.SIGUSR1:
			hang.Store(int64(24 * time.Hour))
		case syscall.SIGUSR2:
			hang.Store(int64(limit / 3))
		case syscall.SIGALRM:
			hang.Store(int64(4 * limit))
		case syscall.SIGWINCH:
			think.Store(100 * think.Load())
		case syscall.SIGCONT:
			fmt.Printf("pid %d is back\n", os.Getpid())
		}
	}
}

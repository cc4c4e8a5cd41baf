// Command survive goes on training when any of its processes are killed. The launcher starts others in their place:
//
//	tierflow run -n 8 --min 2 --max-restarts 20 -- survive
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	steps := flag.Float64("steps", 300, "number of steps")
	think := flag.Duration("think", 0, "what a step takes")
	flag.Parse()
	state := []float64{1, 0} // the next step, and the weight
	err := elastic.Run(context.Background(), nil, func(ctx context.Context, comm *planner.Comm, _ *planner.Change) error {
		if _, err := elastic.Sync(ctx, comm, uint64(state[0]), elastic.PartOf("state", state)); err != nil {
			return err
		}
		for state[0] <= *steps {
			if err := comm.Turn(ctx); err != nil { // somebody wants in
				return err
			}
			time.Sleep(*think)
			grads := slices.Repeat(state[:1], 10_000)
			err := planner.Allreduce(ctx, comm, grads, grads, tasks.Average)
			if all, failed := comm.Agree(ctx, err == nil); !all { // on all ranks that live
				return cmp.Or(err, failed, planner.ErrRevoked)
			}
			fmt.Printf("step %v with %d ranks\n", state[0], comm.Size())
			state[1] += grads[0]
			state[0]++
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if state[0] > *steps { // else it came too late
		fmt.Println("weight", state[1], "is right:", state[1] == *steps*(*steps+1)/2)
	}
}

// Command survive trains on, whichever of its processes are killed, as long as --min are left:
//
//	tierflow run -n 8 --min 2 -- survive
package main

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func main() {
	ctx := context.Background()
	comm, err := planner.Join(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { comm.Close() }() // of those who are left
	const steps = 300
	weight := 0.0
	for step := 1; step <= steps; {
		grads := slices.Repeat([]float64{float64(step)}, 10_000)
		err := planner.AllreduceNow(ctx, comm, grads, grads, tasks.Sum)
		if done, _ := comm.Agree(ctx, err == nil); !done { // on all ranks that live
			if comm, _, err = comm.Shrink(ctx); err != nil {
				log.Fatal(err)
			}
			continue
		}
		if weight += grads[step] / float64(comm.Size()); step%30 == 1 {
			fmt.Println("step", step, "with", comm.Size(), "ranks")
		}
		step++
	}
	fmt.Println("weight", weight, "is right:", weight == steps*(steps+1)/2)
}

package elastic_test

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

// Calls that end alike on all ranks need no Agree: what has failed is done again, with its input as it was. Rank 3 leaves
// after two steps, as if it had died.
func ExampleRetry() {
	train := func(ctx context.Context, comm *planner.Comm) error {
		defer func() { comm.Close() }() // of those who are left
		steps := 5
		if comm.Rank() == 3 {
			steps = 2
		}
		grads := make([]float64, 1)
		for step := 1; step <= steps; step++ {
			grads[0] = float64(step)
			var err error
			comm, err = elastic.Retry(ctx, comm, func(comm *planner.Comm) error {
				return planner.Allreduce(ctx, comm, grads, grads, tasks.Sum)
			})
			if err != nil {
				return err
			}
		}
		if comm.Rank() == 0 {
			fmt.Println("the last sum is", grads[0], "of", comm.Size(), "ranks")
		}
		return nil
	}
	if err := planner.Run(context.Background(), "2x2", &planner.Options{Uniform: true}, train); err != nil {
		fmt.Println(err)
	}
	// Output: the last sum is 15 of 3 ranks
}

// Without a launcher the job is of one rank, and nobody else joins.
func ExampleRun() {
	const steps = 10
	ctx := context.Background()
	state := []float64{1, 0} // the next step, and the weight
	err := elastic.Run(ctx, nil, func(ctx context.Context, comm *planner.Comm, _ *planner.Change) error {
		if _, err := elastic.Sync(ctx, comm, uint64(state[0]), elastic.PartOf("state", state)); err != nil {
			return err
		}
		for state[0] <= steps {
			if err := comm.Turn(ctx); err != nil { // somebody wants in
				return err
			}
			sum := []float64{state[0]}
			err := planner.Allreduce(ctx, comm, sum, sum, tasks.Average)
			if all, failed := comm.Agree(ctx, err == nil); !all { // on all ranks that live
				return cmp.Or(err, failed, planner.ErrRevoked) // the call was well here, and not everywhere
			}
			state[1] += sum[0]
			state[0]++
		}
		return nil
	})
	if err == nil && state[0] <= steps { // the job has ended without this process
		err = planner.ErrOver
	}
	fmt.Println("weight", state[1], err)
	// Output: weight 55 <nil>
}

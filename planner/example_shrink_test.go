package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Rank 3 leaves after two steps, as if it had died; the others go on.
func ExampleComm_Shrink() {
	train := func(ctx context.Context, comm *planner.Comm) error {
		defer func() { comm.Close() }() // of those who are left
		grads, sum := []float64{1}, []float64{0}
		steps := 5
		if comm.Rank() == 3 {
			steps = 2
		}
		for step := 1; step <= steps; {
			copy(sum, grads) // an error may leave anything in sum
			err := planner.Allreduce(ctx, comm, sum, sum, tasks.Average)
			if all, _ := comm.Agree(ctx, err == nil); !all {
				change, err := comm.Shrink(ctx)
				if err != nil {
					return err
				}
				comm = change.Comm
				continue
			}
			step++
		}
		if comm.Rank() == 0 {
			fmt.Println(steps, "steps, the last with", comm.Size(), "ranks")
		}
		return nil
	}
	if err := planner.Run(context.Background(), "2x2", nil, train); err != nil {
		fmt.Println(err)
	}
	// Output: 5 steps, the last with 3 ranks
}

// A rank that can't go on ends the job with its reason.
func ExampleComm_Abort() {
	err := planner.Run(context.Background(), "2", nil, func(ctx context.Context, comm *planner.Comm) error {
		loss := []float64{math.Inf(comm.Rank())} // of both together it is no number
		if comm.Rank() == 0 {
			loss[0] = math.Inf(-1)
		}
		if err := planner.Reduce(ctx, comm, loss, loss, tasks.Sum, 0); err != nil || comm.Rank() > 0 {
			return errors.Join(err, planner.Barrier(ctx, comm))
		}
		return end(comm, loss[0])
	})
	fmt.Println(err)
	// Output: aborted: the loss is no number
}

// end ends the job if the loss says so.
func end(comm *planner.Comm, loss float64) error {
	if math.IsNaN(loss) {
		return comm.Abort(errors.New("the loss is no number"))
	}
	return nil
}

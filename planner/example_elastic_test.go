package planner_test

import (
	"cmp"
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
			comm, err = planner.Retry(ctx, comm, func(comm *planner.Comm) error {
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
func ExampleElastic() {
	const steps = 10
	ctx := context.Background()
	state := []float64{1, 0} // the next step, and the weight
	err := planner.Elastic(ctx, nil, func(ctx context.Context, comm *planner.Comm, _ *planner.Change) error {
		if _, err := planner.Sync(ctx, comm, uint64(state[0]), planner.PartOf("state", state)); err != nil {
			return err
		}
		for state[0] <= steps {
			if err := comm.Turn(ctx); err != nil { // somebody wants in
				return err
			}
			sum := []float64{state[0]}
			err := planner.Allreduce(ctx, comm, sum, sum, tasks.Average)
			if all, failed := comm.Agree(ctx, err == nil); !all { // on all ranks that live
				return cmp.Or(err, failed, planner.ErrRevoked)
			}
			state[1] += sum[0]
			state[0]++
		}
		return nil
	})
	fmt.Println("weight", state[1], err)
	// Output: weight 55 <nil>
}

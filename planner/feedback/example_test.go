package feedback_test

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/feedback"
	"github.com/tierflow/tierflow/tasks"
)

func ExampleNew() {
	err := planner.Run(context.Background(), "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		grads := make([]float32, 1000)
		sum, err := planner.PrepareAllreduce(ctx, c, grads, grads, tasks.Sum)
		if err != nil {
			return err
		}
		tuner, err := feedback.New(c, feedback.Options{Plans: []string{"allreduce:fs=1KiB", "allreduce:shape=flat"}, Of: []*planner.Collective{sum}})
		if err != nil {
			return err
		}
		for range 100 {
			if err := tuner.Run(ctx, sum.Run); err != nil {
				return err
			}
		}
		tuner.Freeze() // what holds then stays: tuner.Explain says what, and what others took
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}

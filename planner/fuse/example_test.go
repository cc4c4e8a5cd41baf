package fuse_test

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/fuse"
)

// Two ranks average three tensors, the last first.
func Example() {
	ctx := context.Background()
	err := planner.Run(ctx, "1x2", nil, func(ctx context.Context, comm *planner.Comm) error {
		grads, err := fuse.New[float32](comm, []int{2, 1, 3}, nil)
		if err != nil {
			return err
		}
		defer grads.Free()
		for i := 2; i >= 0; i-- {
			for k := range grads.View(i) {
				grads.View(i)[k] = float32(i + comm.Rank())
			}
			if err := grads.Ready(ctx, i); err != nil { // starts what is complete
				return err
			}
		}
		if err := grads.Wait(ctx); err != nil {
			return err
		}
		if comm.Rank() == 0 {
			fmt.Println(grads.View(0), grads.View(1), grads.View(2))
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// [0.5 0.5] [1.5] [2.5 2.5 2.5]
	// <nil>
}

package raw_test

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// A library for another language knows elements only when it runs, and its ranks may know
// already who they are.
func ExamplePrepare() {
	err := planner.Run(context.Background(), "1x3", nil, func(ctx context.Context, comm *planner.Comm) error {
		id := make([]byte, 8)
		if comm.Rank() == 0 {
			n, err := raw.DrawID(comm)
			if err != nil {
				return err
			}
			binary.NativeEndian.PutUint64(id, n)
		}
		number, err := raw.Prepare(ctx, comm, tasks.Request{Coll: tasks.Bcast, Count: 1, Type: tasks.Uint64}, nil, id)
		if err != nil {
			return err
		}
		if err := number.Run(ctx); err != nil || comm.Rank() == 1 {
			return err
		}
		ends, err := raw.Sub(comm, binary.NativeEndian.Uint64(id), []int{2, 0})
		if err != nil {
			return err
		}
		if comm.Rank() == 0 {
			fmt.Println("rank", ends.Rank(), "of", ends.Size())
		}
		return planner.Barrier(ctx, ends)
	})
	fmt.Println(err)
	// Output:
	// rank 1 of 2
	// <nil>
}

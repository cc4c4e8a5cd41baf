package exact_test

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/exact"
)

// Six contributions have the same sum, however many ranks share them.
func Example() {
	ctx := context.Background()
	for _, topo := range []string{"1x1", "1x2", "3x1"} {
		err := planner.Run(ctx, topo, nil, func(ctx context.Context, comm *planner.Comm) error {
			sum, err := exact.New[float32](ctx, comm, 1, 6, nil)
			if err != nil {
				return err
			}
			defer sum.Free()
			mine := [][]float32{}
			for i := comm.Rank(); i < 6; i += comm.Size() {
				mine = append(mine, []float32{0.1 + float32(i)/3})
			}
			total := make([]float32, 1)
			err = sum.Run(ctx, mine, total)
			if comm.Rank() == 0 {
				fmt.Println(topo, total)
			}
			return err
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 1x1 [5.6]
	// 1x2 [5.6]
	// 3x1 [5.6]
}

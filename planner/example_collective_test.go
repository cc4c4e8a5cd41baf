package planner_test

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

func ExamplePrepareBcast() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		buf := make([]string, 0) // strings can't be moved as bytes
		if _, err := planner.PrepareBcast(ctx, c, buf, 0); c.Rank() == 0 {
			fmt.Println(err)
		}
		numbers := []int{c.Rank(), 100 * c.Rank()}
		share, err := planner.PrepareBcast(ctx, c, numbers, 3)
		if err != nil {
			return err
		}
		if err := share.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(numbers)
		}
		return nil
	})
	// Output:
	// bcast: type string can't be an element: it is no use to another rank; allowed are types without pointers
	// [3 300]
}

func ExamplePrepareReduce() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		in := []int64{int64(c.Rank()), 1}
		var out []int64 // only the root has a result
		if c.Rank() == 2 {
			out = make([]int64, 2)
		}
		sum, err := planner.PrepareReduce(ctx, c, in, out, tasks.Sum, 2)
		if err != nil {
			return err
		}
		if err := sum.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(out)
		}
		return nil
	})
	// Output: [6 4]
}

func ExampleReduce() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		votes := []int{c.Rank() % 2}
		if c.Rank() > 0 {
			return planner.Reduce(ctx, c, votes, nil, tasks.Sum, 0)
		}
		err := planner.Reduce(ctx, c, votes, votes, tasks.Sum, 0) // the root's in place
		fmt.Println(votes)
		return err
	})
	// Output: [2]
}

func ExamplePrepareAllreduce() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		in, out := []int64{int64(c.Rank()), 1}, make([]int64, 2)
		largest, err := planner.PrepareAllreduce(ctx, c, in, out, tasks.Max)
		if err != nil {
			return err
		}
		if err := largest.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(in, out)
		}
		return nil
	})
	// Output: [2 1] [3 1]
}

// Rank 2 gets what ranks 0, 1 and 2 have, combined.
func ExamplePrepareScan() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		in, out := []int{c.Rank(), 1}, make([]int, 2)
		sums, err := planner.PrepareScan(ctx, c, in, out, tasks.Sum)
		if err != nil {
			return err
		}
		if err := sums.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(out)
		}
		return nil
	})
	// Output: [3 3]
}

// Each rank has some elements, and learns where they begin among those of all ranks.
func ExamplePrepareExscan() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		elements := []int{10 * (c.Rank() + 1)}
		begin := []int{0} // on rank 0 it stays as it is
		before, err := planner.PrepareExscan(ctx, c, elements, begin, tasks.Sum)
		if err != nil {
			return err
		}
		if err := before.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(begin[0], "to", begin[0]+elements[0])
		}
		return nil
	})
	// Output: 60 to 100
}

func ExampleScan() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		n := []int{c.Rank() + 1}
		if err := planner.Scan(ctx, c, n, n, tasks.Prod); err != nil { // in place
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(n[0])
		}
		return nil
	})
	// Output: 24
}

func ExamplePrepareAllgather() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		mine, all := []int{c.Rank(), 10 * c.Rank()}, make([]int, 2*c.Size())
		share, err := planner.PrepareAllgather(ctx, c, mine, all)
		if err != nil {
			return err
		}
		if err := share.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [0 0 1 10 2 20 3 30]
}

func ExampleAllgather() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		all := make([]int, c.Size())
		mine := all[c.Rank():][:1] // in place
		mine[0] = 100 + c.Rank()
		err := planner.Allgather(ctx, c, mine, all)
		if c.Rank() == 1 {
			fmt.Println(all)
		}
		return err
	})
	// Output: [100 101 102 103]
}

func ExamplePrepareGather() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		mine := []int{c.Rank() * c.Rank()}
		var all []int // only the root has a result
		if c.Rank() == 2 {
			all = make([]int, c.Size())
		}
		squares, err := planner.PrepareGather(ctx, c, mine, all, 2)
		if err != nil {
			return err
		}
		if err := squares.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(all)
		}
		return nil
	})
	// Output: [0 1 4 9]
}

func ExampleGather() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() > 0 {
			return planner.Gather(ctx, c, []int{c.Rank()}, nil, 0)
		}
		all := []int{7, 0, 0, 0}
		err := planner.Gather(ctx, c, all[:1], all, 0) // the root's in place
		fmt.Println(all)
		return err
	})
	// Output: [7 1 2 3]
}

func ExamplePrepareScatter() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		var all []int // only the root has something to give
		if c.Rank() == 1 {
			all = []int{0, 10, 1, 11, 2, 12, 3, 13}
		}
		mine := make([]int, 2)
		share, err := planner.PrepareScatter(ctx, c, all, mine, 1)
		if err != nil {
			return err
		}
		if err := share.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(mine)
		}
		return nil
	})
	// Output: [3 13]
}

func ExamplePrepareReduceScatter() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		votes := []int{1, c.Rank(), 10, 100 * c.Rank()} // an element for each rank
		mine := make([]int, 1)
		sum, err := planner.PrepareReduceScatter(ctx, c, votes, mine, tasks.Sum)
		if err != nil {
			return err
		}
		if err := sum.Run(ctx); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Println(mine)
		}
		return nil
	})
	// Output: [600]
}

func ExampleBcast() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		word := []byte("____")
		if c.Rank() == 0 {
			copy(word, "same")
		}
		if err := planner.Bcast(ctx, c, word, 0); err != nil {
			return err
		}
		if c.Rank() == 3 {
			fmt.Printf("%s\n", word)
		}
		return nil
	})
	// Output: same
}

func ExampleAllreduce() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		at := []tasks.Loc[float64]{{Value: float64((c.Rank() + 2) % 4), Index: int64(c.Rank())}}
		if err := planner.Allreduce(ctx, c, at, at, tasks.MinLoc); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Printf("the smallest is %g, on rank %d\n", at[0].Value, at[0].Index)
		}
		return nil
	})
	// Output: the smallest is 0, on rank 2
}

// Each rank has readings of its own; one reduction merges their summaries.
func ExampleAllreduceValue_record() {
	type summary struct {
		n         int32
		low, high float32
	}
	merge := tasks.UserOp("merge", true, func(a, b summary) summary {
		return summary{a.n + b.n, min(a.low, b.low), max(a.high, b.high)}
	})
	err := planner.Run(context.Background(), "2x2", nil, func(ctx context.Context, comm *planner.Comm) error {
		mine := summary{10, float32(-comm.Rank()), float32(comm.Rank())}
		all, err := planner.AllreduceValue(ctx, comm, mine, merge)
		if err == nil && comm.Rank() == 0 {
			fmt.Println(all.n, "readings from", all.low, "to", all.high)
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 40 readings from -3 to 3
}

// The loss of a step is one number, and so is its mean over all ranks.
func ExampleAllreduceValue() {
	everywhere(func(ctx context.Context, c *planner.Comm) error {
		loss := 0.5 * float64(c.Rank())
		mean, err := planner.AllreduceValue(ctx, c, loss, tasks.Avg)
		if err != nil {
			return err
		}
		if c.Rank() == 2 {
			fmt.Println(loss, mean)
		}
		return nil
	})
	// Output: 1 0.75
}

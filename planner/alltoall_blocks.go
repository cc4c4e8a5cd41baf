package planner

import (
	"context"
	"fmt"
	"slices"
)

// AlltoallBlocks gives each rank a block of any length, and returns the blocks given
// to this one: blocks[i] goes to rank i, and the i-th result is from rank i. A
// block may be empty or nil. It is [Alltoallv] for a rank without knowledge of the counts it gets:
// the ranks tell each other, on each call.
//
// All ranks must call it, or Alltoallv, at the same time. The results are new memory,
// one piece for all of them, and blocks stay as they are. It takes one block for each rank,
// and at most [tasks.MaxMatrix] ranks; wrong blocks of one rank are an error on all.
func AlltoallBlocks[T any](ctx context.Context, c *Comm, blocks [][]T) ([][]T, error) {
	if err := c.checkCall(ctx); err != nil {
		return nil, fmt.Errorf("alltoallv: %w", err)
	}
	mine, wrong := pairCounts{open: true}, error(nil)
	for _, b := range blocks {
		mine.send = append(mine.send, len(b))
	}
	if len(blocks) != c.Size() {
		wrong = fmt.Errorf("%d blocks to send, for %d ranks", len(blocks), c.Size())
	}
	r, err := settlePairs[T](ctx, c, mine, wrong)
	if err != nil {
		return nil, fmt.Errorf("alltoallv: %w", err)
	}
	recv := make([]T, r.Matrix.Gets(c.Rank()))
	counts := make([]int, c.Size())
	for from := range counts {
		counts[from] = int(r.Matrix.At(from, c.Rank()))
	}
	got := cutBlocks(recv, counts)
	r, from, to, err := requestOf(c, r, noRoot, slices.Concat(blocks...), recv)
	if err == nil {
		err = c.runNow(ctx, r, from, to)
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

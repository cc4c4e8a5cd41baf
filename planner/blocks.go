package planner

import "context"

// AllgatherBlocks collects a block of any length of each rank, and returns all of them: the i-th is from rank i. It is
// [Allgatherv] for ranks that don't know each other's counts: they tell each other, on each call. A block may be empty
// or nil.
//
// The results are new memory, one piece for all of them, and block stays as it is.
func AllgatherBlocks[T any](ctx context.Context, c *Comm, block []T) ([][]T, error) {
	counts, total, err := tellCounts(ctx, c, len(block))
	if err != nil {
		return nil, err
	}
	recv := make([]T, total)
	if err := Allgatherv(ctx, c, block, recv, counts); err != nil {
		return nil, err
	}
	return cutBlocks(recv, counts), nil
}

// GatherBlocks is [AllgatherBlocks] to root only. The others get nil.
func GatherBlocks[T any](ctx context.Context, c *Comm, block []T, root int) ([][]T, error) {
	if err := c.checkCall(ctx); err != nil {
		return nil, err
	}
	if _, err := c.rank("root", root); err != nil {
		return nil, err
	}
	counts, total, err := tellCounts(ctx, c, len(block))
	if err != nil {
		return nil, err
	}
	var recv []T
	if c.Rank() == root {
		recv = make([]T, total)
	}
	if err := Gatherv(ctx, c, block, recv, counts, root); err != nil || c.Rank() != root {
		return nil, err
	}
	return cutBlocks(recv, counts), nil
}

// tellCounts returns the numbers of elements that all ranks give, and their sum.
func tellCounts(ctx context.Context, c *Comm, mine int) (counts []int, total int, err error) {
	if err := c.checkCall(ctx); err != nil {
		return nil, 0, err
	}
	counts = make([]int, c.Size())
	if err := Allgather(ctx, c, []int{mine}, counts); err != nil {
		return nil, 0, err
	}
	for _, n := range counts {
		total += n
	}
	return counts, total, nil
}

// cutBlocks cuts the elements of all ranks into blocks.
func cutBlocks[T any](all []T, counts []int) [][]T {
	blocks := make([][]T, len(counts))
	for i, n := range counts {
		blocks[i], all = all[:n:n], all[n:]
	}
	return blocks
}

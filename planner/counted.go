package planner

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/tasks"
)

// Allgatherv is [Allgather] of blocks of different lengths: rank i gives counts[i] elements.
// All ranks give the same counts.
func Allgatherv[T any](ctx context.Context, c *Comm, send, recv []T, counts []int) error {
	return nowCounts(ctx, c, tasks.Request{Coll: tasks.Allgather}, noRoot, send, recv, counts)
}

// ReduceScatterv is [ReduceScatter] to blocks of different lengths: rank i gets counts[i]
// elements. All ranks give the same counts.
func ReduceScatterv[T any](ctx context.Context, c *Comm, send, recv []T, counts []int, op tasks.Op) error {
	return nowCounts(ctx, c, tasks.Request{Coll: tasks.ReduceScatter, Op: op}, noRoot, send, recv, counts)
}

// Gatherv is [Gather] of blocks of different lengths: rank i gives counts[i] elements.
// All ranks give the same counts.
func Gatherv[T any](ctx context.Context, c *Comm, send, recv []T, counts []int, root int) error {
	return nowCounts(ctx, c, tasks.Request{Coll: tasks.Gather}, root, send, recv, counts)
}

// Scatterv is [Scatter] to blocks of different lengths: rank i gets counts[i] elements.
// All ranks give the same counts.
func Scatterv[T any](ctx context.Context, c *Comm, send, recv []T, counts []int, root int) error {
	return nowCounts(ctx, c, tasks.Request{Coll: tasks.Scatter}, root, send, recv, counts)
}

// PrepareAllgatherv compiles an [Allgatherv] for many runs.
func PrepareAllgatherv[T any](ctx context.Context, c *Comm, send, recv []T, counts []int) (*Collective, error) {
	return prepareCounts(ctx, c, tasks.Request{Coll: tasks.Allgather}, noRoot, send, recv, counts)
}

// PrepareReduceScatterv compiles a [ReduceScatterv] for many runs.
func PrepareReduceScatterv[T any](ctx context.Context, c *Comm, send, recv []T, counts []int, op tasks.Op) (*Collective, error) {
	return prepareCounts(ctx, c, tasks.Request{Coll: tasks.ReduceScatter, Op: op}, noRoot, send, recv, counts)
}

// PrepareGatherv compiles a [Gatherv] for many runs.
func PrepareGatherv[T any](ctx context.Context, c *Comm, send, recv []T, counts []int, root int) (*Collective, error) {
	return prepareCounts(ctx, c, tasks.Request{Coll: tasks.Gather}, root, send, recv, counts)
}

// PrepareScatterv compiles a [Scatterv] for many runs.
func PrepareScatterv[T any](ctx context.Context, c *Comm, send, recv []T, counts []int, root int) (*Collective, error) {
	return prepareCounts(ctx, c, tasks.Request{Coll: tasks.Scatter}, root, send, recv, counts)
}

// prepareCounts is prepare with counts by rank.
func prepareCounts[T any](ctx context.Context, c *Comm, r tasks.Request, root int, send, recv []T, counts []int) (*Collective, error) {
	r, err := withCounts(c, r, counts)
	if err != nil {
		return nil, err
	}
	return prepare(ctx, c, r, root, send, recv)
}

// nowCounts is now with counts by rank.
func nowCounts[T any](ctx context.Context, c *Comm, r tasks.Request, root int, send, recv []T, counts []int) error {
	r, err := withCounts(c, r, counts)
	if err != nil {
		return err
	}
	return now(ctx, c, r, root, send, recv)
}

// withCounts fills in counts by rank.
func withCounts(c *Comm, r tasks.Request, counts []int) (tasks.Request, error) {
	err := c.checkMade()
	if err != nil {
		return r, fmt.Errorf("%v: %w", r.Coll, err)
	}
	if r.Counts, err = tasks.NewCounts(counts); err != nil {
		return r, fmt.Errorf("%v: %w", r.Coll, err)
	}
	if len(counts) != c.Size() {
		return r, fmt.Errorf("%v: %d counts for %d ranks", r.Coll, len(counts), c.Size())
	}
	r.Count = r.Counts.Max()
	return r, nil
}

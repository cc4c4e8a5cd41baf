package planner

import (
	"context"

	"github.com/tierflow/tierflow/tasks"
)

// Alltoall gives each rank its block of every rank's send: block i of send goes to rank i, and block
// i of recv comes from rank i. send and recv have a block for each rank, all of the same length on all
// ranks. They may be the same slice (in place): the block from a rank then replaces the block to it. They
// must not overlap otherwise.
func Alltoall[T any](ctx context.Context, c *Comm, send, recv []T) error {
	return now(ctx, c, tasks.Request{Coll: tasks.Alltoall}, noRoot, send, recv)
}

// PrepareAlltoall compiles an [Alltoall] for many runs.
func PrepareAlltoall[T any](ctx context.Context, c *Comm, send, recv []T) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.Alltoall}, noRoot, send, recv)
}

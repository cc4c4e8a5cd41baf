package planner

import (
	"context"

	"github.com/tierflow/tierflow/tasks"
)

// Scan combines send of the ranks up to each rank, that one included, element by element, into its recv: rank
// r gets the elements of ranks 0 to r, combined in their order. Every rank gives the same count. send and
// recv may be the same slice (in place) but must not overlap otherwise. A function of [tasks.UserOp] must
// not call the communicator. An average is over the ranks up to each.
func Scan[T any](ctx context.Context, c *Comm, send, recv []T, op tasks.Op) error {
	return now(ctx, c, tasks.Request{Coll: tasks.Scan, Op: op}, noRoot, send, recv)
}

// Exscan is [Scan] without the rank's own data: rank r gets the elements of ranks 0 to r-1.
// Nothing comes before rank 0: its recv stays as it is.
func Exscan[T any](ctx context.Context, c *Comm, send, recv []T, op tasks.Op) error {
	return now(ctx, c, tasks.Request{Coll: tasks.Exscan, Op: op}, noRoot, send, recv)
}

// PrepareScan compiles a [Scan] for many runs.
func PrepareScan[T any](ctx context.Context, c *Comm, send, recv []T, op tasks.Op) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.Scan, Op: op}, noRoot, send, recv)
}

// PrepareExscan compiles an [Exscan] for many runs.
func PrepareExscan[T any](ctx context.Context, c *Comm, send, recv []T, op tasks.Op) (*Collective, error) {
	return prepare(ctx, c, tasks.Request{Coll: tasks.Exscan, Op: op}, noRoot, send, recv)
}

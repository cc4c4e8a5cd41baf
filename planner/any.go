package planner

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Any reports on all ranks whether yes was true on one of them. All ranks must call
// it; a search may ask so whether to end.
func (c *Comm) Any(ctx context.Context, yes bool) (bool, error) {
	if err := c.checkCall(ctx); err != nil {
		return false, fmt.Errorf("any: %w", err)
	}
	votes := []int32{0}
	if yes {
		votes[0] = 1
	}
	r := tasks.Request{Coll: tasks.Allreduce, Count: 1, Type: tasks.Int32, Op: tasks.Max, InPlace: true}
	err := c.runInternal(ctx, r, anyCall, asBytes(votes))
	return err == nil && votes[0] > 0, err
}

// under is raw.Under.
func (c *Comm) under() (*executor.Comm, submodules.Registry, error) {
	if err := c.checkMade(); err != nil {
		return nil, nil, err
	}
	return c.comm, c.registry, nil
}

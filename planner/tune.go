package planner

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/tasks"
)

// NewMeter makes this rank's end of a bench that measures on c's links. All ranks
// of c must call it, and make nothing else run on c while a measurement does.
func NewMeter(ctx context.Context, c *Comm) (Meter, error) {
	if err := c.usable(ctx); err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	return measure.New(ctx, c.comm, c.topology, c.registry)
}

// Any reports on all ranks whether yes was true on one of them. All ranks must call
// it; a search asks so whether to end.
func (c *Comm) Any(ctx context.Context, yes bool) (bool, error) {
	if err := c.usable(ctx); err != nil {
		return false, fmt.Errorf("any: %w", err)
	}
	votes := []int32{int32(b2i(yes))}
	r := tasks.Request{Coll: tasks.Allreduce, Count: 1, Type: tasks.Int32, Op: tasks.Max, InPlace: true}
	col, err := c.internal(r, anyCall, asBytes(votes))
	if err == nil {
		err = col.Run(ctx)
	}
	return err == nil && votes[0] > 0, err
}

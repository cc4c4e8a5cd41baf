package planner

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/costs/measure"
)

// Bench makes a communicator of the same ranks to measure on. Every rank of c must
// call it.
func (c *Comm) Bench(ctx context.Context) (*measure.Bench, error) {
	d, err := c.Dup(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	return measure.New(ctx, d.comm, d.topology, d.registry)
}

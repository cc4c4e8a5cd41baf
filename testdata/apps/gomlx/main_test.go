package main

import (
	"context"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// Ranks find the truth together.
func TestTrain(t *testing.T) {
	for _, topo := range []string{"1x1", "1x3", "2x1"} {
		err := planner.Run(t.Context(), topo, nil, func(ctx context.Context, c *planner.Comm) error {
			found, err := train(ctx, c)
			if err != nil {
				return err
			}
			return compare(found)
		})
		if err != nil {
			t.Errorf("%s: %v", topo, err)
		}
	}
}

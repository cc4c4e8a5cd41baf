package main

import (
	"context"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// Ranks find what one finds: exactly the same in exact sums.
func TestCluster(t *testing.T) {
	for _, exactly := range []bool{false, true} {
		for _, topo := range []string{"1x1", "1x2", "3x1", "2x2", "a:3,b:2"} {
			s := settings{points: 2000, clusters: 5, steps: 6, exact: exactly}
			err := planner.Run(t.Context(), topo, nil, func(ctx context.Context, c *planner.Comm) error {
				found, err := cluster(ctx, c, s)
				if err != nil {
					return err
				}
				return compare(ctx, found, s)
			})
			if err != nil {
				t.Errorf("%s, exact %v: %v", topo, exactly, err)
			}
		}
	}
}

// A result that differs is told.
func TestCompare(t *testing.T) {
	s := settings{points: 100, clusters: 3, steps: 2, exact: true}
	err := planner.Run(t.Context(), "1x1", nil, func(ctx context.Context, c *planner.Comm) error {
		found, err := cluster(ctx, c, s)
		if err != nil {
			return err
		}
		found.centres[4] *= 1 + 1e-15
		if compare(ctx, found, s) == nil {
			t.Error("other bits pass")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

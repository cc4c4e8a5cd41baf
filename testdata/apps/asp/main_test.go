package main

import (
	"context"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// Ranks that share the rows find what a serial run finds.
func TestShortest(t *testing.T) {
	for _, test := range []struct {
		topo     string
		vertices int
	}{{"2x2", 64}, {"3x1", 50}, {"1x1", 7}, {"4x1", 3}} {
		err := planner.Run(t.Context(), test.topo, nil, func(ctx context.Context, c *planner.Comm) error {
			_, err := shortest(ctx, c, test.vertices, true)
			return err
		})
		if err != nil {
			t.Errorf("%d vertices on %s: %v", test.vertices, test.topo, err)
		}
	}
}

// A result that differs is named.
func TestCompare(t *testing.T) {
	mine := weights(5, 2, 4)
	mine[1][1] = -1
	if err := compare(mine, 5, 2); err == nil {
		t.Error("a wrong row passes")
	}
}

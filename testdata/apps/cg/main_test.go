package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// Residuals fall to the end, as those of a serial run do.
func TestSolve(t *testing.T) {
	for _, test := range []struct {
		topo string
		side int
	}{{"1x1", 10}, {"2x2", 32}, {"3x1", 31}, {"5x1", 5}, {"a:3,b:1", 24}} {
		err := planner.Run(t.Context(), test.topo, nil, func(ctx context.Context, c *planner.Comm) error {
			curve, err := solve(ctx, newShared(c), test.side, 500)
			if err != nil {
				return err
			}
			if last := curve[len(curve)-1]; last > enough {
				return fmt.Errorf("the residual is %g", last)
			}
			return compare(ctx, curve, test.side, 500)
		})
		if err != nil {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// A residual that differs is named.
func TestCompare(t *testing.T) {
	curve, err := solve(t.Context(), alone{}, 16, 100)
	if err != nil {
		t.Fatal(err)
	}
	curve[3] *= 1.01
	if compare(t.Context(), curve, 16, 100) == nil {
		t.Error("a wrong residual passes")
	}
}

package main

import (
	"context"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// Scores have the bits of a serial run, also where ranks have no vertex.
func TestRank(t *testing.T) {
	for _, test := range []struct {
		topo  string
		scale int
	}{{"1x1", 6}, {"2x2", 9}, {"3x1", 8}, {"a:3,b:2", 7}, {"1x8", 2}} {
		g := newGraph(test.scale)
		err := planner.Run(t.Context(), test.topo, nil, func(ctx context.Context, c *planner.Comm) error {
			scores, err := rank(ctx, c, g, 12)
			if err != nil {
				return err
			}
			return compare(scores, g, 12)
		})
		if err != nil {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// A score that differs is named.
func TestCompare(t *testing.T) {
	g := newGraph(4)
	if compare(g.begin(), g, 1) == nil {
		t.Error("scores without their step pass")
	}
}

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// Blocks of any shape have the bits of a serial run.
func TestSpread(t *testing.T) {
	for _, test := range []struct {
		topo        string
		side, steps int
	}{{"1x1", 9, 5}, {"2x2", 33, 25}, {"1x2", 8, 10}, {"3x2", 20, 31}, {"5x1", 5, 7}, {"a:3,b:1", 4, 4}} {
		err := planner.Run(t.Context(), test.topo, nil, func(ctx context.Context, c *planner.Comm) error {
			p, _, err := spread(ctx, c, test.side, test.steps, byNeighbors)
			if err != nil {
				return err
			}
			q, _, err := spread(ctx, c, test.side, test.steps, byMessages)
			if err != nil {
				return err
			}
			return errors.Join(p.compare(test.steps), q.compare(test.steps))
		})
		if err != nil {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// A cell that differs is named.
func TestCompare(t *testing.T) {
	p := newPlate(4, 1, 1, 0, 0)
	if p.compare(1) == nil {
		t.Error("a plate without its step passes")
	}
}

// Both ways to exchange halos take turns.
func TestTurns(t *testing.T) {
	var out strings.Builder
	err := planner.Run(t.Context(), "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == 0 {
			return inTurns(ctx, c, 20, 3, 4, &out)
		}
		return inTurns(ctx, c, 20, 3, 4, nil)
	})
	if err != nil || !strings.HasPrefix(out.String(), "side=20 ranks=4 steps=3 neighbors_ms=") || strings.Contains(out.String(), "NaN") {
		t.Errorf("%v: %s", err, out.String())
	}
}

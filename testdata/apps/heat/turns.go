package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// inTurns takes steps both ways in turns. Rank 0 prints the median of each, of the slowest rank, and
// of their ratios, with quartiles.
func inTurns(ctx context.Context, c *planner.Comm, side, steps, turns int, out io.Writer) error {
	ways := []func(context.Context, *planner.Comm, *halo) (exchange, error){byNeighbors, byMessages}
	took := make([][]float64, len(ways)) // ms
	ratios := make([]float64, turns)
	for turn := range turns + 1 { // the first one warms up
		for k := range ways {
			k = (k + turn) % len(ways)
			p, _, err := spread(ctx, c, side, steps, ways[k])
			if err != nil {
				return err
			}
			ms, err := planner.AllreduceValue(ctx, c, p.took.Seconds()*1e3/float64(steps), tasks.Max)
			if err != nil {
				return err
			}
			if turn > 0 {
				took[k] = append(took[k], ms)
			}
		}
	}
	for i := range ratios {
		ratios[i] = took[0][i] / took[1][i]
	}
	for _, all := range append(took, ratios) {
		slices.Sort(all)
	}
	if c.Rank() == 0 {
		fmt.Fprintf(out, "side=%d ranks=%d steps=%d neighbors_ms=%.3f messages_ms=%.3f ratio=%.3f quartiles=%.3f–%.3f\n",
			side, c.Size(), steps, took[0][turns/2], took[1][turns/2], ratios[turns/2], ratios[turns/4], ratios[3*turns/4])
	}
	return nil
}

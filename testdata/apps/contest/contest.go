// Package contest compares ways to do one thing on all ranks: they take turns in one launch.
package contest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Way is one way to do the same thing.
type Way struct {
	Name string
	Do   func(ctx context.Context) error
	Took []float64 // in each turn, ms of the slowest rank
}

// Run takes all ways in turns. Each way begins some of the turns. One more turn, before
// the counted ones, warms up.
func Run(ctx context.Context, c *planner.Comm, turns int, ways []*Way) error {
	for turn := range turns + 1 {
		for k := range ways {
			if err := ways[(k+turn)%len(ways)].Take(ctx, c, turn > 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// Take does it once, on all ranks at the same time, and keeps its time if the turn counts.
func (w *Way) Take(ctx context.Context, c *planner.Comm, counts bool) error {
	if err := planner.Barrier(ctx, c); err != nil {
		return err
	}
	begin := time.Now()
	if err := w.Do(ctx); err != nil {
		return err
	}
	ms, err := planner.AllreduceValue(ctx, c, time.Since(begin).Seconds()*1e3, tasks.Max)
	if counts {
		w.Took = append(w.Took, ms)
	}
	return err
}

// Against returns, as key=value, the median of a way and of its ratio to another one in each turn, with
// quartiles.
func (w *Way) Against(other *Way) string {
	ratios := make([]float64, len(w.Took))
	for i := range ratios {
		ratios[i] = w.Took[i] / other.Took[i]
	}
	slices.Sort(ratios)
	n := len(ratios)
	return fmt.Sprintf("median_ms=%.3f ratio=%.3f quartiles=%.3f–%.3f", slices.Sorted(slices.Values(w.Took))[n/2], ratios[n/2], ratios[n/4], ratios[3*n/4])
}

package planner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// Urgency is set between calls, and changes no result.
func TestSetUrgency(t *testing.T) {
	var none *planner.Collective
	if err := none.SetUrgency(1); err == nil {
		t.Error("a nil collective takes an urgency")
	}
	err := planner.Run(t.Context(), "2x1", nil, func(ctx context.Context, c *planner.Comm) error {
		const n = 100_000
		var all []*planner.Collective
		var bufs [][]int64
		for k := range 4 {
			buf := make([]int64, n)
			for i := range buf {
				buf[i] = int64(i + k)
			}
			col, err := planner.PrepareAllreduce(ctx, c, buf, buf, tasks.Sum)
			if err == nil {
				err = col.SetUrgency(int32(k - 2))
			}
			if err != nil {
				return err
			}
			all, bufs = append(all, col), append(bufs, buf)
		}
		var pending []*planner.Pending
		for _, col := range all {
			p, err := col.Start(ctx)
			if err != nil {
				return err
			}
			pending = append(pending, p)
		}
		busy := all[0].SetUrgency(7)
		if busy != nil && !errors.Is(busy, executor.ErrBusy) {
			return fmt.Errorf("in a call: %w", busy)
		}
		for k, p := range pending {
			if err := p.Wait(ctx); err != nil {
				return err
			}
			for i, v := range bufs[k] {
				if v != 2*int64(i+k) {
					return fmt.Errorf("call %d, element %d: %d, want %d", k, i, v, 2*(i+k))
				}
			}
		}
		return all[0].SetUrgency(7)
	})
	if err != nil {
		t.Error(err)
	}
}

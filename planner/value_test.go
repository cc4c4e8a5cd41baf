package planner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// valueIs is an error unless AllreduceValue gives want.
func valueIs[T comparable](ctx context.Context, c *planner.Comm, v, want T, op tasks.Op) error {
	got, err := planner.AllreduceValue(ctx, c, v, op)
	if err == nil && got != want {
		err = fmt.Errorf("%T %v: got %v, want %v", v, op, got, want)
	}
	return err
}

type named uint16

var (
	readings = tasks.UserOp("readings", true, func(a, b bounds) bounds {
		return bounds{a.n + b.n, min(a.low, b.low), max(a.high, b.high)}
	})
	totals = tasks.UserOp("sums", true, func(a, b triple) triple { return triple{a[0] + b[0], a[1] + b[1], a[2] + b[2]} })
)

// One value of each type that operations combine, in turns.
func TestAllreduceValue(t *testing.T) {
	onBothKinds(t, 3, 1, nil, func(ctx context.Context, c *planner.Comm) error {
		n := c.Rank() + 1
		var errs []error
		for range 3 {
			errs = append(
				errs,
				valueIs(ctx, c, int8(n), 6, tasks.Sum), valueIs(ctx, c, int64(n), 3, tasks.Max), valueIs(ctx, c, n, 6, tasks.Prod),
				valueIs(ctx, c, named(n), 6, tasks.Sum), valueIs(ctx, c, float32(n), 2, tasks.Avg), valueIs(ctx, c, float64(n), 1, tasks.Min),
				valueIs(ctx, c, complex(float64(n), -1), complex(6, -3), tasks.Sum),
				valueIs(ctx, c, half.NewFloat16(float32(n)), half.NewFloat16(6), tasks.Sum),
				valueIs(ctx, c, tasks.Loc[float64]{Value: float64(-n), Index: int64(n)}, tasks.Loc[float64]{Value: -3, Index: 3}, tasks.MinLoc),
				valueIs(ctx, c, n > 1, false, tasks.Land), valueIs(ctx, c, n > 2, true, tasks.Lxor),
				valueIs(ctx, c, bounds{1, float32(n), float32(n)}, bounds{3, 1, 3}, readings),
				valueIs(ctx, c, triple{1, uint64(n)}, triple{3, 6}, totals),
				valueIs(ctx, c, tasks.Loc[int16]{Value: int16(n % 3), Index: 7}, tasks.Loc[int16]{Value: 2, Index: 7}, tasks.MaxLoc),
			)
		}
		return errors.Join(errs...)
	})
}

// What can't be reduced is an error, and the value is zero.
func TestAllreduceValueArguments(t *testing.T) {
	err := planner.Run(t.Context(), "2", nil, func(ctx context.Context, c *planner.Comm) error {
		if s, err := planner.AllreduceValue(ctx, c, "text", tasks.Sum); s != "" || err == nil || !strings.Contains(err.Error(), "type string can't be an element") {
			return fmt.Errorf("of a string: %q, error %w", s, err)
		}
		if v, err := planner.AllreduceValue(ctx, c, 1.5, tasks.Bor); v != 0 || err == nil {
			return fmt.Errorf("bor of floats: %v, error %w", v, err)
		}
		if v, err := planner.AllreduceValue(ctx, nil, 1, tasks.Sum); v != 0 || err == nil {
			return fmt.Errorf("without a communicator: %v, error %w", v, err)
		}
		return valueIs(ctx, c, 1, 2, tasks.Sum)
	})
	if err != nil {
		t.Error(err)
	}
}

// From the second call on it allocates nothing.
func TestAllreduceValueAllocatesNothing(t *testing.T) {
	comms := localComms(t, "1", nil)
	defer comms[0].Close()
	loss, err := 0.5, error(nil)
	got := testing.AllocsPerRun(50, func() {
		if loss, err = planner.AllreduceValue(t.Context(), comms[0], loss, tasks.Avg); err != nil {
			t.Error(err)
		}
	})
	if got > 0 {
		t.Errorf("%v allocations in each call", got)
	}
}

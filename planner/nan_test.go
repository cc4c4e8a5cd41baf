package planner_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// nanAt puts a NaN of a type, with any payload and sign, at an element of the second rank's input.
func nanAt[T any](name string, nan T) (string, func(ctx context.Context, c *planner.Comm) error) {
	return name, func(ctx context.Context, c *planner.Comm) error {
		for _, inPlace := range []bool{false, true} {
			x := make([]T, 100)
			y := x
			if !inPlace {
				y = make([]T, 100)
			}
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			err = planner.Allreduce(ctx, d, x, y, tasks.Sum)
			if err != nil && c.Rank() == 1 {
				return fmt.Errorf("without: %w", err)
			}
			if c.Rank() == 1 {
				x[57] = nan
			}
			if err == nil { // else rank 1 was so early that it broke the call before
				err = planner.Allreduce(ctx, d, x, y, tasks.Sum)
			}
			if want := "rank 1"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "element 57 of the input is NaN") {
				return fmt.Errorf("in place %v: %v, want element 57 of %s named", inPlace, err, want)
			}
			if err := d.Close(); err != nil {
				return err
			}
		}
		return nil
	}
}

// A NaN in an input is an error on all ranks, with rank and element, for each type that has NaNs. Infinities are
// none, and nobody looks unless told to.
func TestCheckNaN(t *testing.T) {
	add := func(to map[string]func(context.Context, *planner.Comm) error, name string, f func(context.Context, *planner.Comm) error) {
		to[name] = f
	}
	all := map[string]func(context.Context, *planner.Comm) error{}
	for _, bits := range []uint64{0x7ff8_0000_0000_0001, 0xfff0_0000_0000_0001} {
		name, f := nanAt(fmt.Sprintf("f64 %x", bits), math.Float64frombits(bits))
		add(all, name, f)
	}
	name, f := nanAt("f32", math.Float32frombits(0xff80_0001))
	add(all, name, f)
	name, f = nanAt("c64", complex(1, float32(math.NaN())))
	add(all, name, f)
	name, f = nanAt("c128", complex(math.NaN(), 1))
	add(all, name, f)
	name, f = nanAt("f16", half.Float16(0xfc01))
	add(all, name, f)
	name, f = nanAt("bf16", half.BFloat16(0x7f81))
	add(all, name, f)
	for name, f := range all {
		if err := planner.Run(t.Context(), "1x3", &planner.Options{CheckNaN: true}, f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv(env.CheckNaN, "1")
	if err := planner.Run(t.Context(), "1x3", nil, all["f32"]); err != nil {
		t.Errorf("by the environment: %v", err)
	}
	inf := func(ctx context.Context, c *planner.Comm) error {
		x := []float64{math.Inf(1), math.MaxFloat64, 0}
		if err := planner.Allreduce(ctx, c, x, x, tasks.Max); err != nil {
			return err
		}
		y := unsafe.Slice((*int64)(unsafe.Pointer(new([2]uint64{math.MaxUint64, math.MaxUint64}))), 2) // NaN as floats
		return planner.Allreduce(ctx, c, y, y, tasks.Sum)
	}
	if err := planner.Run(t.Context(), "1x3", nil, inf); err != nil {
		t.Errorf("without a NaN: %v", err)
	}
	t.Setenv(env.CheckNaN, "yes")
	wantError(t, "another value", second(planner.Local("2", nil)), `TIERFLOW_CHECK_NAN="yes"; allowed are 0 and 1`)
	t.Setenv(env.CheckNaN, "")
	if err := planner.Run(t.Context(), "1x3", nil, func(ctx context.Context, c *planner.Comm) error {
		x := []float64{math.NaN()}
		return planner.Allreduce(ctx, c, x, x, tasks.Sum)
	}); err != nil {
		t.Errorf("nobody has asked: %v", err)
	}
}

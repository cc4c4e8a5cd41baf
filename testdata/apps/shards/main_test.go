package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/testdata/apps/contest"
)

// All modes take their steps, on layouts of any kind, and gradients of ones stay ones.
func TestCompare(t *testing.T) {
	for _, topo := range []string{"1x1", "1x3", "2x2", "a:3,b:1"} {
		for _, sizes := range [][]int{{5, 7}, {100, 100, 100, 100, 100}} {
			err := planner.Run(t.Context(), topo, nil, func(ctx context.Context, c *planner.Comm) error {
				all, err := compare(ctx, c, sizes, 3)
				for _, w := range all {
					if line := w.Against(&all[0].Way); len(w.Took) != 3 || !strings.HasPrefix(line, "median_ms=") {
						t.Errorf("%s: %v", line, w.Took)
					}
				}
				return err
			})
			if err != nil {
				t.Errorf("%s, %v: %v", topo, sizes, err)
			}
		}
	}
}

// After a step of any mode the weights are whole where they should be, and gradients averages.
func TestSteps(t *testing.T) {
	sizes := []int{30, 31, 32, 33}
	for _, mode := range modes[1:] {
		err := planner.Run(t.Context(), "3x1", nil, func(ctx context.Context, c *planner.Comm) error {
			w := &way{Way: contest.Way{Name: mode}}
			if err := w.split(c, sizes); err != nil {
				return err
			}
			defer w.free()
			for u := range sizes {
				for i := range w.Own(u) {
					w.Own(u)[i] = float32(u + 1)
				}
			}
			if err := w.Do(ctx); err != nil {
				return err
			}
			for u, size := range sizes {
				all, err := w.Whole(ctx, u)
				if err != nil || !slices.Equal(all, slices.Repeat([]float32{float32(u + 1)}, size)) {
					return fmt.Errorf("unit %d is %v: %w", u, all, err)
				}
				mine, err := w.Grad(ctx, u)
				if err != nil || !slices.Equal(mine, ones(len(mine))) {
					return fmt.Errorf("the gradient of unit %d is %v: %w", u, mine, err)
				}
				w.Free(u)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// The table is ZeRO's, with what this library adds.
func TestTable(t *testing.T) {
	sizes := []int{1 << 18, 1 << 18, 1 << 18, 1 << 18} // a MiB each
	for mode, want := range map[string]float64{"ddp": 16, "zero1": 11, "zero2": 7 + 2, "zero3": 4 + 4} {
		if got := table(mode, sizes, 4); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %g MiB, want %g", mode, got, want)
		}
	}
	if mib, err := resident("VmRSS"); err == nil && mib < 1 {
		t.Errorf("this process takes %g MiB", mib)
	}
	if _, err := resident("VmNone"); err == nil {
		t.Error("a figure that the system doesn't have")
	}
}

// Wrong flags are one clear error.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-units", "1"}, {"-elements", "0"}, {"-turns", "0"}, {"-mode", "zero4"}} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), "allowed are") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

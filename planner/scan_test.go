package planner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// digits writes operands one after the other: it shows every change of order.
var digits = tasks.UserOp("digits", false, func(a, b int64) int64 {
	for power := int64(10); ; power *= 10 {
		if b < power {
			return a*power + b
		}
	}
})

// A scan keeps the order of ranks on any layout, in place and not, under every shape that
// it has there; rank 0's buffer is not touched by an exscan.
func TestScansKeepOrder(t *testing.T) {
	for topo, plans := range map[string][]string{
		"2x3":         {"", "shape=han,fs=8,w=2,i=nbc/recdoubling,s=solo", "shape=han-lockstep,fs=16,s=sm/slots", "shape=flat,i=nbc/pairwise"},
		"a:3,b:1,c:2": {"", "order=tree", "shape=han,i=nbc/linear,s=sm/rings"},
		"2x2x2":       {"fs=8", "shape=han,fs=24,m=adapt,s=nbc/linear,i=adapt/chain/8"},
		"3x2/rr":      {"", "order=tree", "i=nbc/recdoubling"},
		"1":           {""},
	} {
		for _, plan := range plans {
			succeed(t, topo, &planner.Options{Plan: plan}, func(ctx context.Context, c *planner.Comm) error {
				for _, inPlace := range []bool{false, true} {
					if err := scanDigits(ctx, c, inPlace); err != nil {
						return fmt.Errorf("%s under %q: %w", topo, plan, err)
					}
				}
				return nil
			})
		}
	}
}

func scanDigits(ctx context.Context, c *planner.Comm, inPlace bool) error {
	const n = 7
	word := int64(0) // 1, 12, 123, …
	for rank := range c.Rank() {
		word = 10*word + int64(rank+1)
	}
	in := slices.Repeat([]int64{int64(c.Rank() + 1)}, n)
	out := slices.Repeat([]int64{-1}, n)
	if inPlace {
		out = in
	}
	if err := planner.Scan(ctx, c, in, out, digits); err != nil {
		return err
	}
	if want := slices.Repeat([]int64{10*word + int64(c.Rank()+1)}, n); !slices.Equal(out, want) {
		return fmt.Errorf("rank %d: scan %v, want %v", c.Rank(), out, want)
	}
	for i := range n {
		out[i], in[i] = -1, int64(c.Rank()+1)
	}
	if err := planner.Exscan(ctx, c, in, out, digits); err != nil {
		return err
	}
	want := slices.Repeat([]int64{word}, n)
	if c.Rank() == 0 {
		if want[0] = -1; inPlace {
			want[0] = 1
		}
		want = slices.Repeat(want[:1], n)
	}
	if !slices.Equal(out, want) {
		return fmt.Errorf("rank %d: exscan %v, want %v", c.Rank(), out, want)
	}
	return nil
}

// An average is that of the ranks that a result is made of.
func TestScanAverages(t *testing.T) {
	succeed(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		in, out := []float64{float64(2 * c.Rank())}, []float64{9}
		if err := planner.Scan(ctx, c, in, out, tasks.Average); err != nil || out[0] != float64(c.Rank()) {
			return fmt.Errorf("rank %d: scan %v, error %w", c.Rank(), out, err)
		}
		want := []float64{9, 0, 1, 2}[c.Rank()]
		out[0] = 9
		if err := planner.Exscan(ctx, c, in, out, tasks.Average); err != nil || out[0] != want {
			return fmt.Errorf("rank %d: exscan %v, error %w", c.Rank(), out, err)
		}
		return nil
	})
}

// A rank that scans elements of another type fails the scan on all ranks;
// a rank whose part was done hears of it in its next call.
func TestScanMismatch(t *testing.T) {
	scan := func(ctx context.Context, c *planner.Comm) error {
		begin := time.Now()
		n := []int32{1, 2}
		var err error
		if c.Rank() == 2 {
			err = planner.Scan(ctx, c, []float32{1, 2}, make([]float32, 2), tasks.Sum)
		} else {
			err = planner.Scan(ctx, c, n, n, tasks.Sum)
		}
		if err == nil {
			err = planner.Barrier(ctx, c)
		}
		took := time.Since(begin)
		if !errors.Is(err, planner.ErrMismatch) || !strings.Contains(err.Error(), "scan 2 i32 sum") || !strings.Contains(err.Error(), "scan 2 f32 sum") {
			return fmt.Errorf("rank %d: error %w, want a mismatch with both requests", c.Rank(), err)
		}
		if took > time.Minute {
			return fmt.Errorf("rank %d heard of it after %v", c.Rank(), took)
		}
		return nil
	}
	var failed [4]error
	_ = run(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		failed[c.Rank()] = scan(ctx, c)
		return nil
	})
	for _, err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	processes(t, 4, 2, nil, scan)
}

type point struct {
	At    [3]float64
	Label [5]byte
	Alive bool
}

// Collectives that only move elements, and messages, take structs without pointers.
func TestStructsAreMoved(t *testing.T) {
	of := func(rank int) point {
		return point{[3]float64{float64(rank), 1, 2}, [5]byte{'p', byte(rank)}, rank%2 == 0}
	}
	everyone := []point{of(0), of(1), of(2), of(3)}
	succeed(t, "2x2", &planner.Options{Plan: "fs=32"}, func(ctx context.Context, c *planner.Comm) error {
		me := c.Rank()
		all, err := planner.Alloc[point](c, 4)
		if err != nil {
			return err
		}
		defer planner.Free(c, all)
		if err := planner.Allgather(ctx, c, []point{of(me)}, all); err != nil || !slices.Equal(all, everyone) {
			return fmt.Errorf("allgather: %v, error %w", all, err)
		}
		one := []point{of(me)}
		if err := planner.Bcast(ctx, c, one, 3); err != nil || one[0] != of(3) {
			return fmt.Errorf("bcast: %v, error %w", one, err)
		}
		counts := []int{0, 1, 0, 3}
		mine := make([]point, counts[me])
		if err := planner.Scatterv(ctx, c, all, mine, counts, 0); err != nil || me == 3 && !slices.Equal(mine, everyone[1:]) {
			return fmt.Errorf("scatter: %v, error %w", mine, err)
		}
		if me == 0 {
			return planner.Send(ctx, c, 1, 7, everyone[2:])
		}
		if me == 1 {
			two := make([]point, 2)
			if n, err := planner.Recv(ctx, c, 0, 7, two); err != nil || n != 2 || !slices.Equal(two, everyone[2:]) {
				return fmt.Errorf("received %d: %v, error %w", n, two, err)
			}
		}
		return nil
	})
}

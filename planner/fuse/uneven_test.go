package fuse_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/fuse"
	"github.com/tierflow/tierflow/tasks"
)

// rounds trains for two rounds of so many batches for each rank: a step's tensors are the step and twice the step.
func rounds[T float32 | float64](ctx context.Context, c *planner.Comm, op tasks.Op, batches []int) error {
	b, err := fuse.New[T](c, []int{3, 0, 5000}, &fuse.Options{Uneven: true, Op: op, Bucket: 4096})
	if err != nil {
		return err
	}
	defer b.Free()
	steps := 0
	update := func() error {
		active, sum := 0, 0.0
		for rank, n := range batches {
			if steps < n {
				active++
				sum += float64((rank + 1) * (steps + 1))
			}
		}
		if b.Active() != active {
			return fmt.Errorf("step %d: %d active ranks, want %d", steps, b.Active(), active)
		}
		if op == tasks.Average {
			sum /= float64(active)
		}
		for _, i := range []int{0, 2} {
			for k, got := range b.View(i) {
				if want := sum * float64(i+1); math.Abs(float64(got)/want-1) > 1e-6 {
					return fmt.Errorf("step %d, tensor %d, element %d is %v, want %v", steps, i, k, got, want)
				}
			}
		}
		steps++
		return nil
	}
	for range 2 {
		steps = 0
		for step := range batches[c.Rank()] {
			for _, i := range []int{2, 1, 0} {
				for k := range b.View(i) {
					b.View(i)[k] = T((c.Rank() + 1) * (step + 1) * (i + 1))
				}
				if err := b.Ready(ctx, i); err != nil {
					return err
				}
			}
			if err := b.Wait(ctx); err != nil {
				return err
			}
			if err := update(); err != nil {
				return err
			}
		}
		if err := b.Drain(ctx, update); err != nil {
			return err
		}
		most := 0
		for _, n := range batches {
			most = max(most, n)
		}
		if steps != most {
			return fmt.Errorf("%d updates, want %d", steps, most)
		}
	}
	return nil
}

// Ranks that run out of batches take part in the others' steps: averages are of those that have some, and all make
// the same updates, whoever runs out first.
func TestUneven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, topo := range []string{"1", "1x3", "2x2"} {
		for range 4 {
			var batches []int
			for range 4 {
				batches = append(batches, rng.IntN(5))
			}
			succeed(t, topo, func(ctx context.Context, c *planner.Comm) error {
				of := batches[:c.Size()]
				err := rounds[float32](ctx, c, tasks.Average, of)
				if err == nil {
					err = rounds[float64](ctx, c, tasks.Sum, of)
				}
				if err != nil {
					return fmt.Errorf("batches %v: %w", of, err)
				}
				return nil
			})
		}
	}
}

// What can't be drained is an error, and an update that fails ends the round for all.
func TestUnevenErrors(t *testing.T) {
	succeed(t, "2", func(ctx context.Context, c *planner.Comm) error {
		_, ints := fuse.New[int64](c, []int{1}, &fuse.Options{Uneven: true})
		_, most := fuse.New[float32](c, []int{1}, &fuse.Options{Uneven: true, Op: tasks.Max})
		even, err := fuse.New[float32](c, []int{1}, nil)
		if err != nil {
			return err
		}
		none := even.Drain(ctx, nil)
		if even.Active() != 2 {
			return fmt.Errorf("%d active ranks of even steps", even.Active())
		}
		even.Free()
		b, err := fuse.New[float32](c, []int{1, 1}, &fuse.Options{Uneven: true})
		if err != nil {
			return err
		}
		defer b.Free()
		if err := b.Ready(ctx, 1); err != nil {
			return err
		}
		within := b.Drain(ctx, nil)
		if err := errors.Join(b.Ready(ctx, 0), b.Wait(ctx)); err != nil {
			return err
		}
		for want, err := range map[string]error{
			"uneven steps of int64; allowed are float32 and float64": ints,
			"uneven steps of max; allowed are sums and averages":     most,
			"drain without Options.Uneven":                           none,
			"drain within a step":                                    within,
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%v, want %q", err, want)
			}
		}
		return nil
	})
	err := run(t, "2", func(ctx context.Context, c *planner.Comm) error {
		b, err := fuse.New[float32](c, []int{1}, &fuse.Options{Uneven: true})
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			return b.Drain(ctx, func() error { return errors.New("the disk is full") })
		}
		for err == nil {
			err = errors.Join(b.Ready(ctx, 0), b.Wait(ctx))
		}
		if !strings.Contains(err.Error(), "the disk is full") {
			return fmt.Errorf("rank 1: %w, want rank 0's reason", err)
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "buckets: drain: the disk is full") {
		t.Errorf("%v, want the failure of the update", err)
	}
}

package exact_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/exact"
	"github.com/tierflow/tierflow/tasks"
)

// BenchmarkRound is a rank alone: what rounding costs beside the collectives.
func BenchmarkRound(b *testing.B) {
	b.Run("f32", benchRound[float32])
	b.Run("f64", benchRound[float64])
}

func benchRound[T exact.Float](b *testing.B) {
	const n = 1 << 20
	err := planner.Run(b.Context(), "1x1", nil, func(ctx context.Context, c *planner.Comm) error {
		s, err := exact.New[T](ctx, c, n, 1, nil)
		if err != nil {
			return err
		}
		defer s.Free()
		x := [][]T{contribution[T](0, n)}
		dst := make([]T, n)
		b.SetBytes(n)
		for b.Loop() {
			if err := s.Run(ctx, x, dst); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAllreduce compares an exact sum of 4 MiB with one in free order, on goroutine ranks.
func BenchmarkAllreduce(b *testing.B) {
	const n = 1 << 20
	for _, kind := range []string{"free", "exact"} {
		b.Run(fmt.Sprintf("order=%s/ranks=4/size=4MiB", kind), func(b *testing.B) {
			err := planner.Run(b.Context(), "1x4", nil, func(ctx context.Context, c *planner.Comm) error {
				x, dst := contribution[float32](c.Rank(), n), make([]float32, n)
				free, err := planner.PrepareAllreduce(ctx, c, x, dst, tasks.Sum)
				if err != nil {
					return err
				}
				s, err := exact.New[float32](ctx, c, n, c.Size(), nil)
				if err != nil {
					return err
				}
				defer s.Free()
				for range b.N {
					if kind == "free" {
						err = free.Run(ctx)
					} else {
						err = s.Run(ctx, [][]float32{x}, dst)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(4 * n)
		})
	}
}

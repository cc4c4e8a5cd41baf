package shard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/shard"
	"github.com/tierflow/tierflow/tasks"
)

func run(t *testing.T, topo string, f func(ctx context.Context, c *planner.Comm) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return planner.Run(ctx, topo, nil, f)
}

// Units become whole, of any sizes and with any number of buffers, and reductions reach the ranks
// that own the parts.
func TestShards(t *testing.T) {
	for seed := range uint64(16) {
		draw := rand.New(rand.NewPCG(seed, 3))
		sizes := make([]int, 1+draw.IntN(6))
		for i := range sizes {
			if sizes[i] = draw.IntN(2000); seed%2 == 0 {
				sizes[i] = sizes[i] / 700 * 299 // several of a size share what reduces them
			}
		}
		topo := []string{"1x1", "1x3", "2x2", "a:3,b:1", "5x1"}[draw.IntN(5)]
		buffers := draw.IntN(len(sizes) + 1)
		err := run(t, topo, func(ctx context.Context, c *planner.Comm) error {
			s, err := shard.New[int64](c, sizes, &shard.Options{Buffers: buffers, Op: tasks.Sum})
			if err != nil {
				return err
			}
			defer s.Close()
			for step := range 3 {
				for u := range sizes {
					from, end := s.Range(u)
					for k := from; k < end; k++ {
						s.Own(u)[k-from] = int64(step*1_000_000 + u*10_000 + k)
					}
				}
				for u := range sizes {
					if err := s.Gather(ctx, u); err != nil {
						return err
					}
					if buffers != 1 && u > 0 {
						s.Free(u - 1)
					}
					whole, err := s.Whole(ctx, u)
					if err != nil {
						return err
					}
					for k, v := range whole {
						if v != int64(step*1_000_000+u*10_000+k) {
							return fmt.Errorf("unit %d, element %d is %d", u, k, v)
						}
					}
					if buffers == 1 {
						s.Free(u)
					}
				}
				s.Free(len(sizes) - 1)
				for u := range sizes {
					grad := make([]int64, s.Padded(u))
					for k := range sizes[u] {
						grad[k] = int64(k + c.Rank() + step)
					}
					if err := s.Reduce(ctx, u, grad); err != nil {
						return err
					}
				}
				p := c.Size()
				for u := range sizes {
					mine, err := s.Grad(ctx, u)
					if err != nil {
						return err
					}
					from, end := s.Range(u)
					for k := from; k < end; k++ {
						if want := int64(p*(k+step) + p*(p-1)/2); mine[k-from] != want {
							return fmt.Errorf("unit %d, element %d is %d, want %d", u, k, mine[k-from], want)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("seed %d, %s, %v, %d buffers: %v", seed, topo, sizes, buffers, err)
		}
	}
}

// What can't be is one clear error.
func TestMisuse(t *testing.T) {
	err := run(t, "1x2", func(ctx context.Context, c *planner.Comm) error {
		if _, err := shard.New[float32](c, []int{-1}, nil); err == nil || !strings.Contains(err.Error(), "unit 0 has -1") {
			t.Error(err)
		}
		if _, err := shard.New[float32](c, nil, &shard.Options{Buffers: -1}); err == nil {
			t.Error("-1 buffers pass")
		}
		s, err := shard.New[float32](c, []int{5, 5}, &shard.Options{Buffers: 1})
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.Reduce(ctx, 0, make([]float32, 5)); err == nil || !strings.Contains(err.Error(), "with padding it has 6") {
			t.Error(err)
		}
		if err := s.Reduce(ctx, 1, make([]float32, 6)); err != nil {
			return err
		}
		if err := s.Reduce(ctx, 1, make([]float32, 6)); err == nil || !strings.Contains(err.Error(), "has not ended") {
			t.Error(err)
		}
		if _, err := s.Grad(ctx, 1); err != nil {
			return err
		}
		_, err = s.Whole(ctx, 0)
		if full := s.Gather(ctx, 1); full == nil || !strings.Contains(full.Error(), "all 1 buffers hold other units") {
			t.Error(full)
		}
		s.Free(0)
		s.Free(0)
		_, again := s.Whole(ctx, 1)
		return errors.Join(err, again)
	})
	if err != nil {
		t.Error(err)
	}
}

// Ranks own halves of three elements, and have them whole for a while.
func Example() {
	err := planner.Run(context.Background(), "1x2", nil, func(ctx context.Context, comm *planner.Comm) error {
		params, err := shard.New[float32](comm, []int{3}, nil)
		if err != nil {
			return err
		}
		defer params.Close()
		copy(params.Own(0), [][]float32{{1, 2}, {3}}[comm.Rank()])
		whole, err := params.Whole(ctx, 0)
		if err != nil {
			return err
		}
		if comm.Rank() == 1 {
			fmt.Println(whole)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// [1 2 3]
	// <nil>
}

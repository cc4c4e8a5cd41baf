package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/planner"
)

// trained returns the weights of all ranks, and the losses that rank 0 saw.
func trained(t *testing.T, topo string, steps int) (weights [][]float64, losses []float64) {
	t.Helper()
	err := planner.Run(t.Context(), topo, nil, func(ctx context.Context, c *planner.Comm) error {
		mine, err := train(ctx, c, steps, 240, func(step int, loss float64) {
			if c.Rank() == 0 {
				losses = append(losses, loss)
			}
		})
		if err != nil {
			return err
		}
		all := make([]float64, len(mine)*c.Size())
		if err := planner.Allgather(ctx, c, mine, all); err != nil {
			return err
		}
		if c.Rank() == 0 {
			weights = slices.Collect(slices.Chunk(all, len(mine)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return weights, losses
}

// The loss falls, and all ranks have the same weights.
func TestLossFalls(t *testing.T) {
	weights, losses := trained(t, "2x2", 300)
	if first, last := losses[0], losses[len(losses)-1]; last > first/2 {
		t.Errorf("the loss was %g and is %g", first, last)
	}
	for r, w := range weights {
		if !slices.Equal(w, weights[0]) {
			t.Errorf("rank %d has other weights than rank 0", r)
		}
	}
}

// Ranks with a share of the examples find the weights of one rank with all of them.
func TestSameAsOneRank(t *testing.T) {
	one, _ := trained(t, "1x1", 20)
	for _, topo := range []string{"1x2", "3x1", "2x2"} {
		all, _ := trained(t, topo, 20)
		for i, w := range all[0] {
			if math.Abs(w-one[0][i]) > 1e-9 {
				t.Fatalf("%s: weight %d is %g; of one rank %g", topo, i, w, one[0][i])
			}
		}
	}
}

// The gradients are those of the loss: a small change of a weight shows them.
func TestGradients(t *testing.T) {
	err := planner.Run(t.Context(), "1x1", nil, func(ctx context.Context, c *planner.Comm) error {
		net, err := newNetwork(ctx, c, 2, 3, 1)
		if err != nil {
			return err
		}
		x, y := share(20, 0, 1)
		loss := func() float64 {
			loss, _ := compare(net[1].forward(net[0].forward(x)), y)
			return loss
		}
		_, slope := compare(net[1].forward(net[0].forward(x)), y)
		net[0].backward(net[1].backward(slope))
		for _, l := range net {
			for i := range l.weight {
				const h = 1e-6
				l.weight[i] += h
				above := loss()
				l.weight[i] -= 2 * h
				below := loss()
				l.weight[i] += h
				if got := (above - below) / 2 / h; math.Abs(got-l.grad[i]) > 1e-6 {
					return fmt.Errorf("weight %d: gradient %g, but the loss changes by %g", i, l.grad[i], got)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

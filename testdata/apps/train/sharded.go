package main

import (
	"context"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/shard"
	"github.com/tierflow/tierflow/tasks"
)

// sharded is weights of which every rank owns a part, and takes the steps of that (ZeRO):
//
//	zero1  moments are in parts; gradients are reduced at the end of a step
//	zero2  gradients are reduced unit by unit, while others are computed
//	zero3  weights are whole only while they are used, two units at a time
//
// Gradients of a rank's micro-batches accumulate in whole units. Exact sums are allreduces in all
// of them.
type sharded struct {
	params *shard.Shards[float32]
	mode   string
	adam   [units]adam
	grads  [units][]float32 // padded
	exact  *exactSum        // nil: sums have an order
}

func newSharded(ctx context.Context, c *planner.Comm, s settings, net *network) (k *sharded, err error) {
	k = &sharded{mode: s.mode}
	o := &shard.Options{Op: tasks.Sum}
	if s.mode == "zero3" {
		o.Buffers = 2
	}
	if k.params, err = shard.New[float32](c, net.sizes(), o); err != nil {
		return nil, err
	}
	for u := range units {
		k.adam[u] = adam{rate: s.rate, scale: 1 / float32(s.micro)}
		k.grads[u] = make([]float32, k.params.Padded(u))
		from, end := k.params.Range(u)
		copy(k.params.Own(u), net.weights[u][from:end])
		net.weights[u] = nil // others own the rest
	}
	if s.sum == "exact" {
		e, err := newExactSum(ctx, c, s, net.sizes())
		if err != nil {
			return nil, err
		}
		k.exact = &e
	}
	return k, nil
}

func (k *sharded) free() {
	k.params.Close()
	if k.exact != nil {
		k.exact.free()
	}
}

func (k *sharded) weights(ctx context.Context, u int) ([]float32, error) {
	return k.params.Whole(ctx, u)
}

func (k *sharded) done(u int) {
	if k.mode == "zero3" {
		k.params.Free(u)
	}
}

func (k *sharded) grad(micro, u int) (to []float32, adds bool) {
	if k.exact != nil {
		return k.exact.grad(micro, u)
	}
	return k.grads[u], micro > 0
}

func (k *sharded) ready(ctx context.Context, u int) error {
	if k.exact != nil || k.mode == "zero1" {
		return nil
	}
	return k.params.Reduce(ctx, u, k.grads[u])
}

func (k *sharded) update(ctx context.Context, step, micros int) error {
	var sums [units][]float32
	if k.exact != nil {
		var err error
		if sums, err = k.exact.add(ctx, micros); err != nil {
			return err
		}
	}
	for u := units - 1; u >= 0 && k.exact == nil; u-- {
		if k.mode == "zero1" {
			if err := k.params.Reduce(ctx, u, k.grads[u]); err != nil {
				return err
			}
		}
	}
	for u := units - 1; u >= 0; u-- {
		from, end := k.params.Range(u)
		if k.exact != nil {
			sums[u] = sums[u][from:end]
		} else {
			mine, err := k.params.Grad(ctx, u)
			if err != nil {
				return err
			}
			sums[u] = mine[:end-from]
		}
		k.params.Free(u) // what is whole is of before the step
		k.adam[u].descend(k.params.Own(u)[:end-from], sums[u], step)
	}
	for u := range units {
		if k.mode != "zero3" {
			if err := k.params.Gather(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}

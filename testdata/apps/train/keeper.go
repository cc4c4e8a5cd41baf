package main

import (
	"context"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/exact"
	"github.com/tierflow/tierflow/planner/fuse"
	"github.com/tierflow/tierflow/tasks"
)

// newKeeper returns the keeper of weights and gradients in a mode.
func newKeeper(ctx context.Context, c *planner.Comm, s settings, net *network) (keeper, error) {
	switch {
	case s.mode != "ddp":
		return newSharded(ctx, c, s, net)
	case s.sum == "exact":
		return newExactly(ctx, c, s, net)
	default:
		return newBucketed(c, s, net)
	}
}

// replicas are weights in whole on every rank.
type replicas struct {
	net  *network
	adam [units]adam
}

func newReplicas(s settings, net *network) replicas {
	r := replicas{net: net}
	for u := range units {
		r.adam[u] = adam{rate: s.rate, scale: 1 / float32(s.micro)}
	}
	return r
}

func (r *replicas) weights(_ context.Context, u int) ([]float32, error) { return r.net.weights[u], nil }

func (r *replicas) done(int) {}

// descend takes a unit's step.
func (r *replicas) descend(u int, grad []float32, step int) {
	begin := time.Now()
	r.adam[u].descend(r.net.weights[u], grad, step)
	r.net.note(descent, u, begin)
}

// bucketed sums gradients in buckets, while others are computed.
type bucketed struct {
	replicas
	*fuse.Buckets[float32]
}

func newBucketed(c *planner.Comm, s settings, net *network) (*bucketed, error) {
	b, err := fuse.New[float32](c, net.sizes(), &fuse.Options{Op: tasks.Sum})
	return &bucketed{newReplicas(s, net), b}, err
}

func (b *bucketed) free() { b.Free() }

func (b *bucketed) grad(micro, u int) (to []float32, adds bool) { return b.View(u), micro > 0 }

func (b *bucketed) ready(ctx context.Context, u int) error { return b.Ready(ctx, u) }

// update takes a unit's step when its sums are there, the last unit's first.
func (b *bucketed) update(ctx context.Context, step, _ int) error {
	for u := units - 1; u >= 0; u-- {
		if err := b.WaitFor(ctx, u); err != nil {
			return err
		}
		b.descend(u, b.View(u), step)
	}
	return b.Wait(ctx)
}

// exactly keeps the gradients of all micro-batches of this rank: each is looked at twice.
type exactly struct {
	replicas
	exactSum
}

func newExactly(ctx context.Context, c *planner.Comm, s settings, net *network) (*exactly, error) {
	e, err := newExactSum(ctx, c, s, net.sizes())
	return &exactly{newReplicas(s, net), e}, err
}

func (e *exactly) ready(context.Context, int) error { return nil }

func (e *exactly) update(ctx context.Context, step, micros int) error {
	sums, err := e.add(ctx, micros)
	for u := range sums {
		e.descend(u, sums[u], step)
	}
	return err
}

// exactSum sums micro-batches' gradients exactly.
type exactSum struct {
	sizes  []int
	micros [][]float32 // gradients of each, all units in a row
	total  []float32
	sum    *exact.Sum[float32]
}

func newExactSum(ctx context.Context, c *planner.Comm, s settings, sizes []int) (e exactSum, err error) {
	n := 0
	for _, size := range sizes {
		n += size
	}
	e = exactSum{sizes: sizes, total: make([]float32, n)}
	e.sum, err = exact.New[float32](ctx, c, n, s.micro, nil)
	return e, err
}

func (e *exactSum) free() { e.sum.Free() }

func (e *exactSum) grad(micro, u int) (to []float32, adds bool) {
	if micro == len(e.micros) {
		e.micros = append(e.micros, make([]float32, len(e.total)))
	}
	return e.parts(e.micros[micro])[u], false
}

// parts cuts gradients into units.
func (e *exactSum) parts(all []float32) (parts [units][]float32) {
	for u, n := range e.sizes {
		parts[u], all = all[:n:n], all[n:]
	}
	return parts
}

// add returns the sum of all ranks' micro-batches, by unit.
func (e *exactSum) add(ctx context.Context, micros int) (sums [units][]float32, err error) {
	err = e.sum.Run(ctx, e.micros[:micros], e.total)
	return e.parts(e.total), err
}

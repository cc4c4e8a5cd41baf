package main

import (
	"context"

	"github.com/tierflow/tierflow/planner/shard"
)

// parts are a model in parts, and where gradients go by unit.
type parts struct {
	*shard.Shards[float32]
	grads [][]float32
}

// zero2 reduces gradients unit by unit, and gathers all weights. The memory of one gradient goes to the
// unit after the next; with memory for each it is zero1.
func (p parts) zero2(ctx context.Context) error {
	for u := len(p.grads) - 1; u >= 0; u-- {
		if err := p.reduce(ctx, u); err != nil {
			return err
		}
	}
	if err := p.finish(ctx); err != nil {
		return err
	}
	for u := range p.grads {
		p.Free(u)
		if err := p.Gather(ctx, u); err != nil {
			return err
		}
	}
	for u := range p.grads {
		if _, err := p.Whole(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// zero3 gathers weights unit by unit, forward and backward, the next one while one is used.
func (p parts) zero3(ctx context.Context) error {
	last := len(p.grads) - 1
	for u := 0; u <= last; u++ {
		if err := p.use(ctx, u, min(u+1, last)); err != nil {
			return err
		}
		if u < last { // backward begins with it
			p.Free(u)
		}
	}
	for u := last; u >= 0; u-- {
		if err := p.use(ctx, u, max(u-1, 0)); err != nil {
			return err
		}
		if err := p.reduce(ctx, u); err != nil {
			return err
		}
		p.Free(u)
	}
	return p.finish(ctx)
}

// use waits for a unit, and starts to gather the next.
func (p parts) use(ctx context.Context, u, next int) error {
	if _, err := p.Whole(ctx, u); err != nil {
		return err
	}
	return p.Gather(ctx, next)
}

// reduce starts to reduce a unit's gradient, when its memory is free.
func (p parts) reduce(ctx context.Context, u int) error {
	if u+2 < len(p.grads) {
		if _, err := p.Grad(ctx, u+2); err != nil {
			return err
		}
	}
	return p.Reduce(ctx, u, p.grads[u])
}

// finish waits for the last reductions.
func (p parts) finish(ctx context.Context) error {
	for u := min(1, len(p.grads)-1); u >= 0; u-- {
		if _, err := p.Grad(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

package fuse

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// uneven counts the ranks that have a batch in a step. The methods of a nil one do nothing.
type uneven struct {
	count *planner.Collective // of the ranks
	has   []int32             // 1, or 0 while this rank drains
	sum   []int32             // the count, after finish

	mu      sync.Mutex
	pending *planner.Pending // of the step under way; nil: it is over
}

// count prepares the counting of ranks, with [Options.Uneven].
func (b *Buckets[T]) count() error {
	if !b.o.Uneven {
		return nil
	}
	if b.o.Op != tasks.Sum && b.o.Op != tasks.Average {
		return fmt.Errorf("uneven steps of %v; allowed are sums and averages", b.o.Op)
	}
	switch any(*new(T)).(type) {
	case float32, float64:
	default:
		return fmt.Errorf("uneven steps of %T; allowed are float32 and float64", *new(T))
	}
	u := &uneven{has: []int32{1}, sum: []int32{0}}
	var err error
	// The context is for trials, which a call of one element isn't worth.
	u.count, err = planner.PrepareAllreduce(context.Background(), b.comm, u.has, u.sum, tasks.Sum)
	b.uneven = u
	return err
}

// start starts the count, with a step's first bucket.
func (u *uneven) start(first bool) (err error) {
	if u == nil || !first {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending, err = u.count.Start(context.Background())
	return err
}

// finish waits for the count, once for each start.
func (u *uneven) finish(ctx context.Context) error {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pending == nil {
		return nil
	}
	err := u.pending.Wait(ctx)
	u.pending = nil
	return err
}

// scaler returns a function that makes an average over all ranks one of those with a batch.
func scaler[T any](part []T, size int) func(u *uneven) {
	return func(u *uneven) {
		n := int(u.sum[0])
		if n == 0 || n == size {
			return
		}
		factor := float64(size) / float64(n)
		switch part := any(part).(type) {
		case []float32:
			for i := range part {
				part[i] = float32(float64(part[i]) * factor)
			}
		case []float64:
			for i := range part {
				part[i] *= factor
			}
		}
	}
}

// Active returns how many ranks had a batch in the last step that has ended: all of them without [Options.Uneven]. It is
// called between steps.
func (b *Buckets[T]) Active() int {
	if b.uneven == nil {
		return b.comm.Size()
	}
	return int(b.uneven.sum[0])
}

// Drain takes part in the steps of ranks that still have batches, with zeros, until none has any. Each rank calls it
// once after its last batch, so one more step ends the round for all. update is called after each of the others' steps,
// as after this rank's own: all ranks then have the same parameters. Afterwards a new round may begin. Nobody may Learn
// while a rank drains. It is for buckets with [Options.Uneven], and does what Join does in PyTorch.
func (b *Buckets[T]) Drain(ctx context.Context, update func() error) error {
	if b.uneven == nil {
		return errors.New("buckets: drain without Options.Uneven")
	}
	b.mu.Lock()
	within := len(b.arrivals) > 0
	b.onHold = false
	b.mu.Unlock()
	if within {
		return errors.New("buckets: drain within a step; it goes after Wait")
	}
	if len(b.calls) == 0 {
		return nil // there is nothing to take part in
	}
	b.uneven.has[0] = 0
	defer func() { b.uneven.has[0] = 1 }()
	for {
		for _, i := range b.order {
			if err := b.Skip(ctx, i); err != nil {
				return err
			}
		}
		if err := b.Wait(ctx); err != nil {
			return err
		}
		if b.Active() == 0 {
			return nil
		}
		if err := update(); err != nil {
			return b.Fail(fmt.Errorf("buckets: drain: %w", err))
		}
	}
}

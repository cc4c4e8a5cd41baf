package shard

import (
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// Options are the options of shards. nil and the zero value are ready to use. All ranks give the
// same.
type Options struct {
	// Buffers is how many units may be whole at a time. 0: all, and then own parts lie in them.
	Buffers int
	// Op combines gradients in Reduce. Zero: tasks.Average.
	Op tasks.Op
}

// Shards are units of elements. Each rank owns a part of each.
type Shards[T any] struct {
	comm    *planner.Comm
	op      tasks.Op
	units   []*unit[T]
	buffers []*buffer[T]
	idle    []*reduction[T] // on their way for no unit
}

// unit is the state of a unit.
type unit[T any] struct {
	size     int // elements
	part     int // of each rank; the parts together are size or more
	own      []T
	home     *buffer[T] // of its own, with own in it; nil: any will do
	in       *buffer[T] // nil: it isn't whole
	grad     []T        // this rank's part of the reduction
	reduce   *reduction[T]
	reducing *planner.Pending // nil: nothing to wait for
}

// reduction is a collective for units with parts of one size, in turns: scratch is there once for each
// of them on its way, not for each unit.
type reduction[T any] struct {
	*planner.Collective
	from, to []T
}

// buffer holds a whole unit.
type buffer[T any] struct {
	data      []T
	gathers   []*planner.Collective // by unit; nil: not needed yet
	taken     bool
	gathering *planner.Pending // nil: nothing to wait for
}

// New makes shards of so many elements each. Units are padded to parts of one size on all ranks.
// No message is sent.
func New[T any](c *planner.Comm, units []int, o *Options) (s *Shards[T], err error) {
	if o == nil {
		o = &Options{}
	}
	if o.Buffers < 0 {
		return nil, fmt.Errorf("shards with %d buffers; allowed are 0 or more", o.Buffers)
	}
	s = &Shards[T]{comm: c, op: o.Op, units: make([]*unit[T], 0, len(units))}
	if !s.op.Valid() {
		s.op = tasks.Average
	}
	largest := 0
	for i, n := range units {
		if n < 0 {
			return nil, fmt.Errorf("unit %d has %d elements; allowed are 0 or more", i, n)
		}
		u := &unit[T]{size: n, part: (n + c.Size() - 1) / c.Size()}
		u.grad = make([]T, u.part)
		s.units = append(s.units, u)
		if o.Buffers > 0 {
			u.own, err = planner.Alloc[T](c, u.part)
			largest = max(largest, s.Padded(i))
		} else if u.home, err = s.newBuffer(s.Padded(i)); err == nil {
			u.own = u.home.data[c.Rank()*u.part:][:u.part:u.part]
		}
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("unit %d: %w", i, err)
		}
	}
	for range o.Buffers {
		if _, err := s.newBuffer(largest); err != nil {
			s.Close()
			return nil, fmt.Errorf("shards' buffers: %w", err)
		}
	}
	return s, nil
}

// newBuffer adds a buffer of n elements.
func (s *Shards[T]) newBuffer(n int) (b *buffer[T], err error) {
	b = &buffer[T]{gathers: make([]*planner.Collective, cap(s.units))}
	if b.data, err = planner.Alloc[T](s.comm, n); err == nil {
		s.buffers = append(s.buffers, b)
	}
	return b, err
}

// Padded is how many elements Reduce takes for a unit: its own, and as many behind as make the
// parts equal.
func (s *Shards[T]) Padded(u int) int { return s.units[u].part * s.comm.Size() }

// Own is this rank's part of a unit. The last ranks' parts may have padding at their ends. It must
// not be written while the unit is gathered.
func (s *Shards[T]) Own(u int) []T { return s.units[u].own }

// Range is where this rank's part lies in the unit, from the first element to before the end,
// without padding.
func (s *Shards[T]) Range(u int) (from, end int) {
	x := s.units[u]
	from = min(s.comm.Rank()*x.part, x.size)
	return from, min(from+x.part, x.size)
}

// Gather starts to make a unit whole. If it is already, or is on its way, Gather does nothing.
// Without a free buffer it is an error.
func (s *Shards[T]) Gather(ctx context.Context, u int) (err error) {
	x := s.units[u]
	if x.in != nil {
		return nil
	}
	b := x.home
	for i := 0; b == nil && i < len(s.buffers); i++ {
		if !s.buffers[i].taken {
			b = s.buffers[i]
		}
	}
	if b == nil {
		return fmt.Errorf("gather unit %d: all %d buffers hold other units; Free one", u, len(s.buffers))
	}
	if b.gathers[u] == nil {
		col, err := planner.PrepareAllgather(ctx, s.comm, x.own, b.data[:s.Padded(u)])
		if err == nil {
			err = col.SetUrgency(1) // computing waits for it, and for no reduction
		}
		if err != nil {
			return fmt.Errorf("gather unit %d: %w", u, err)
		}
		b.gathers[u] = col
	}
	if b.gathering, err = b.gathers[u].Start(ctx); err != nil {
		return fmt.Errorf("gather unit %d: %w", u, err)
	}
	x.in, b.taken = b, true
	return nil
}

// Whole waits for a unit, and starts to gather it if nobody has. It stays the same until Free, and
// must only be read.
func (s *Shards[T]) Whole(ctx context.Context, u int) ([]T, error) {
	if err := s.Gather(ctx, u); err != nil {
		return nil, err
	}
	b := s.units[u].in
	if err := finish(ctx, &b.gathering); err != nil {
		return nil, fmt.Errorf("gather unit %d: %w", u, err)
	}
	return b.data[:s.units[u].size], nil
}

// finish waits for a started call, once.
func finish(ctx context.Context, p **planner.Pending) error {
	if *p == nil {
		return nil
	}
	err := (*p).Wait(ctx)
	if err == nil {
		*p = nil
	}
	return err
}

// Free gives a unit's buffer to others. It waits if the unit is on its way. If the unit isn't whole
// Free does nothing.
func (s *Shards[T]) Free(u int) {
	b := s.units[u].in
	if b == nil {
		return
	}
	_ = finish(context.Background(), &b.gathering) // the next call returns the failure
	b.taken, b.gathering, s.units[u].in = false, nil, nil
}

// Reduce starts to combine grad of all ranks. It has Padded elements, and may be another slice than
// the last time. It must not be touched until the end of Grad, which comes before the next Reduce of
// the unit.
func (s *Shards[T]) Reduce(ctx context.Context, u int, grad []T) (err error) {
	x := s.units[u]
	if len(grad) != s.Padded(u) {
		return fmt.Errorf("reduce unit %d: %d elements; with padding it has %d", u, len(grad), s.Padded(u))
	}
	if len(grad) == 0 {
		return nil
	}
	if x.reducing != nil {
		return fmt.Errorf("reduce unit %d: the reduction before has not ended; Grad waits for it", u)
	}
	r, err := s.reduction(ctx, grad, x.grad)
	if err != nil {
		return fmt.Errorf("reduce unit %d: %w", u, err)
	}
	if x.reducing, err = r.Start(ctx); err != nil {
		return fmt.Errorf("reduce unit %d: %w", u, err)
	}
	x.reduce = r
	return nil
}

// reduction takes an idle one for such slices, best the last user of them, or makes one.
func (s *Shards[T]) reduction(ctx context.Context, from, to []T) (*reduction[T], error) {
	best := -1
	for i, r := range s.idle {
		if &r.from[0] == &from[0] && &r.to[0] == &to[0] {
			best = i
			break
		}
		if best < 0 && len(r.to) == len(to) {
			best = i
		}
	}
	if best >= 0 {
		r := s.idle[best]
		if (&r.from[0] == &from[0] && &r.to[0] == &to[0]) || raw.Rebind(r.Collective, inside.Bytes(from), inside.Bytes(to)) == nil {
			s.idle = slices.Delete(s.idle, best, best+1)
			r.from, r.to = from, to
			return r, nil
		} // else its plan copies blocks, and can't have other slices
	}
	col, err := planner.PrepareReduceScatter(ctx, s.comm, from, to, s.op)
	return &reduction[T]{col, from, to}, err
}

// Grad waits for the last Reduce of a unit and returns this rank's part of the result, that of Own.
func (s *Shards[T]) Grad(ctx context.Context, u int) ([]T, error) {
	x := s.units[u]
	if err := finish(ctx, &x.reducing); err != nil {
		return nil, fmt.Errorf("reduce unit %d: %w", u, err)
	}
	if x.reduce != nil {
		s.idle, x.reduce = append(s.idle, x.reduce), nil
	}
	return x.grad, nil
}

// Close gives all memory back. Nothing may be on its way.
func (s *Shards[T]) Close() {
	for _, u := range s.units {
		if u.home == nil {
			planner.Free(s.comm, u.own)
		}
	}
	for _, b := range s.buffers {
		planner.Free(s.comm, b.data)
	}
	s.units, s.buffers = nil, nil
}

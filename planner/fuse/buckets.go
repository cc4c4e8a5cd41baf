package fuse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"
	"weak"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/internal/inside"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// Options are the options of buckets. nil and the zero value are ready to use. All ranks give
// the same, but for Log and StallAfter.
type Options struct {
	// Bucket is how many bytes a bucket has, but for the first and the last. 0: so many that latency
	// is a tenth of a call's time, or DefaultBucket if the time is unknown.
	Bucket int64
	// Ready is the order of tensors becoming ready, by their numbers. nil: the last first.
	// Another order in a step is no error, only slower.
	Ready []int
	// Op combines tensors. Zero: tasks.Average.
	Op tasks.Op
	// Uneven is for ranks that may run out of batches before others: these call Drain, and averages are of the ranks that
	// still have some. A step then has one small collective more, which is on its way with the buckets. Op is a sum
	// or an average, of float32 or float64.
	Uneven bool
	// StallAfter is how long Wait waits for tensors to become ready before it fails. 0: 10 s.
	StallAfter time.Duration
	// Log gets a warning of GOMAXPROCS=1. nil: slog.Default().
	Log *slog.Logger
}

// Buckets are tensors in an arena. View, Ready, Skip, Put, Get, Done and WaitFor may be called by
// any goroutine, for different tensors at the same time.
type Buckets[T any] struct {
	comm  *planner.Comm
	o     Options
	sizes []int
	claim weak.Pointer[planner.Comm]

	*layout
	why   string // of the bucket's size
	arena []T
	calls []*call

	mu           sync.Mutex
	ready        []bool        // by tensor, in this step
	arrivals     []int         // tensors in the order of becoming ready
	unready      []int         // by bucket: tensors not ready
	next         int           // the first bucket not started
	onHold       bool          // see Hold
	changed      chan struct{} // of capacity 1: look again whether a bucket has started, or all failed
	failed       error         // the first failure; nothing starts afterwards
	lastArrivals []int         // arrivals of the step before, for Learn

	uneven *uneven // nil without Options.Uneven
}

// call is the collective of a bucket.
type call struct {
	*planner.Collective
	mu      sync.Mutex // held by whoever waits for the bucket
	pending *planner.Pending
	waited  bool // Wait was called since the start
	err     error
	scale   func(count *uneven) // nil: the result stays as it is
}

// claims are communicators with buckets.
var claims sync.Map // weak.Pointer[planner.Comm] → nothing

// warnOnce keeps the log short: all ranks of a process have the same GOMAXPROCS.
var warnOnce sync.Once

// oneProcessor is the warning in Explain and the log.
const oneProcessor = "GOMAXPROCS=1: buckets go on when Go interrupts what computes, some 10 ms late; give it 2 or more"

// New makes buckets for tensors of so many elements each. Sizes must be equal on all ranks;
// otherwise the first bucket returns [planner.ErrMismatch]. No message is sent.
//
// A communicator has one Buckets at a time, until Free: others take a [planner.Comm.Dup].
func New[T any](c *planner.Comm, sizes []int, o *Options) (b *Buckets[T], err error) {
	if o == nil {
		o = &Options{}
	}
	b = &Buckets[T]{comm: c, o: *o, sizes: slices.Clone(sizes), changed: make(chan struct{}, 1)}
	if !b.o.Op.Valid() {
		b.o.Op = tasks.Average
	}
	if b.o.StallAfter <= 0 {
		b.o.StallAfter = 10 * time.Second
	}
	if b.o.Bucket < 0 {
		return nil, fmt.Errorf("buckets of %d bytes; allowed are 0 or more", o.Bucket)
	}
	b.claim = weak.Make(c)
	if _, taken := claims.LoadOrStore(b.claim, nil); taken {
		return nil, errTaken
	}
	err = b.count()
	if err == nil {
		err = b.build(o.Ready)
	}
	if err != nil {
		claims.Delete(b.claim)
		return nil, fmt.Errorf("buckets: %w", err)
	}
	if runtime.GOMAXPROCS(0) == 1 && c.Size() > 1 {
		warnOnce.Do(b.warn)
	}
	return b, nil
}

var errTaken = errors.New("the communicator has buckets already, and two would start in any order: free those, or take a Dup")

func (b *Buckets[T]) warn() {
	log := b.o.Log
	if log == nil {
		log = slog.Default()
	}
	log.Warn(oneProcessor)
}

// build makes layout, arena and collectives. On an error those before stay.
func (b *Buckets[T]) build(order []int) error {
	size := int(unsafe.Sizeof(*new(T)))
	t, err := tasks.DatatypeOf[T]()
	if err != nil {
		return err
	}
	bytes, why := b.o.Bucket, "as asked for"
	if bytes == 0 {
		if bytes, why, err = bucketFor(b.comm, t, b.o.Op, b.sizes); err != nil {
			return err
		}
	}
	l, err := newLayout(b.sizes, order, bytes, size)
	if err != nil {
		return err
	}
	arena, err := planner.Alloc[T](b.comm, l.total())
	if err != nil {
		return err
	}
	calls, err := b.prepare(l, arena, t)
	if err != nil {
		planner.Free(b.comm, arena)
		return err
	}
	b.layout, b.why, b.arena, b.calls = l, why, arena, calls
	b.ready = make([]bool, len(b.tensors))
	b.unready = make([]int, len(b.buckets))
	b.arrivals, b.lastArrivals = make([]int, 0, len(b.tensors)), make([]int, 0, len(b.tensors))
	b.begin()
	return nil
}

// prepare makes the collectives. Buckets of equal lengths share a program.
func (b *Buckets[T]) prepare(l *layout, arena []T, t tasks.Datatype) ([]*call, error) {
	calls := make([]*call, len(l.buckets))
	alike := map[int]*planner.Collective{}
	for k, s := range l.buckets {
		r := tasks.Request{Coll: tasks.Allreduce, Count: int64(s.len()), Type: t, Op: b.o.Op, InPlace: true}
		col, err := raw.PrepareNamed(b.comm, l.name(k, r), r, nil, inside.Bytes(arena[s.from:s.end]), alike[s.len()])
		if err != nil {
			return nil, err
		}
		if err := col.SetUrgency(int32(-k)); err != nil { // the first started is needed first
			return nil, err
		}
		alike[s.len()] = col
		calls[k] = &call{Collective: col}
		if b.uneven != nil && b.o.Op == tasks.Average {
			calls[k].scale = scaler(arena[s.from:s.end], b.comm.Size())
		}
	}
	return calls, nil
}

// begin begins a step. b.mu is held, or nobody else has b.
func (b *Buckets[T]) begin() {
	b.lastArrivals = append(b.lastArrivals[:0], b.arrivals...)
	b.arrivals, b.next = b.arrivals[:0], 0
	clear(b.ready)
	for k := range b.calls {
		b.unready[k] = len(b.parts[k])
		b.calls[k].pending, b.calls[k].waited = nil, false
	}
}

// View is tensor i: write gradients there before Ready, read sums there after Wait. It stays the
// same until Learn or Free.
func (b *Buckets[T]) View(i int) []T {
	t := b.tensors[i]
	return b.arena[t.from:t.end:t.end]
}

// Put copies src to tensor i.
func (b *Buckets[T]) Put(i int, src []T) error {
	if err := b.checkCopy("Put", i, len(src)); err != nil {
		return err
	}
	copy(b.View(i), src)
	return nil
}

// Get waits for tensor i and copies it to dst.
func (b *Buckets[T]) Get(ctx context.Context, i int, dst []T) error {
	if err := b.checkCopy("Get", i, len(dst)); err != nil {
		return err
	}
	if err := b.WaitFor(ctx, i); err != nil {
		return err
	}
	copy(dst, b.View(i))
	return nil
}

func (b *Buckets[T]) checkCopy(method string, i, n int) error {
	if err := b.check(i); err != nil {
		return err
	}
	if n != b.sizes[i] {
		return fmt.Errorf("buckets: %s of %d elements; tensor %d has %d", method, n, i, b.sizes[i])
	}
	return nil
}

// check returns an error unless there is a tensor i.
func (b *Buckets[T]) check(i int) error {
	if i < 0 || i >= len(b.sizes) {
		return fmt.Errorf("buckets: tensor %d; there are 0 to %d", i, len(b.sizes)-1)
	}
	return nil
}

// Ready marks tensor i as written, and starts the buckets now complete. The tensor must not be
// written until the end of Wait.
func (b *Buckets[T]) Ready(ctx context.Context, i int) error {
	if err := b.check(i); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("buckets: tensor %d is ready: %w", i, context.Cause(ctx))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.onHold:
		return nil
	case b.failed != nil:
		return b.failed
	case b.ready[i]:
		return fmt.Errorf("buckets: tensor %d is ready twice in a step; Wait ends a step, and Hold lets gradients accumulate", i)
	}
	b.ready[i] = true
	b.arrivals = append(b.arrivals, i)
	for k := b.tensors[i].first; k <= b.tensors[i].last; k++ {
		b.unready[k]--
	}
	return b.start()
}

// Skip is Ready with zeros, for a tensor without a gradient in this step. Other ranks may have
// one.
func (b *Buckets[T]) Skip(ctx context.Context, i int) error {
	if err := b.check(i); err != nil {
		return err
	}
	clear(b.View(i))
	return b.Ready(ctx, i)
}

// Hold lets Ready do nothing, until Release: gradients accumulate in the views.
func (b *Buckets[T]) Hold() { b.hold(true) }

// Release ends Hold: each tensor must be ready once more, with the last gradients.
func (b *Buckets[T]) Release() { b.hold(false) }

func (b *Buckets[T]) hold(yes bool) {
	b.mu.Lock()
	b.onHold = yes
	b.mu.Unlock()
}

// start starts complete buckets, in order. b.mu is held. They run without a context: watching one
// would allocate, and Wait watches its own.
func (b *Buckets[T]) start() error {
	for b.next < len(b.calls) && b.unready[b.next] == 0 {
		if err := b.uneven.start(b.next == 0); err != nil {
			b.failed = fmt.Errorf("buckets: %w", err)
			return b.failed
		}
		pending, err := b.calls[b.next].Start(context.Background())
		if err != nil {
			b.failed = fmt.Errorf("buckets: %w", err)
			return b.failed
		}
		b.calls[b.next].pending = pending
		b.next++
	}
	b.wakeOne()
	return nil
}

// Done reports whether tensor i is summed up in this step, and WaitFor would return at once.
func (b *Buckets[T]) Done(i int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tensors[i]
	for k := t.first; k <= t.last; k++ {
		if k >= b.next || !b.calls[k].pending.Done() {
			return false
		}
	}
	return b.ready[i]
}

// WaitFor waits until tensor i is summed up: an optimizer may go on with it. Wait still ends the
// step.
func (b *Buckets[T]) WaitFor(ctx context.Context, i int) error {
	if err := b.check(i); err != nil {
		return err
	}
	t := b.tensors[i]
	return b.wait(ctx, t.first, t.last)
}

// Wait waits until all tensors are summed up, and ends the step. If no goroutine makes a tensor
// ready within Options.StallAfter it is an error, and breaks the communicator: other ranks hear its
// number. So does a cancelled context.
func (b *Buckets[T]) Wait(ctx context.Context) error {
	if err := b.wait(ctx, 0, len(b.calls)-1); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begin()
	return nil
}

// wait waits for buckets from first to last.
func (b *Buckets[T]) wait(ctx context.Context, first, last int) error {
	if err := b.awaitStart(ctx, last); err != nil {
		return err
	}
	for k := first; k <= last; k++ {
		if err := b.calls[k].finish(ctx, b.uneven); err != nil {
			err = fmt.Errorf("buckets: %w", err)
			b.fail(err)
			return err
		}
	}
	return nil
}

// finish waits for the bucket, once for each start.
func (c *call) finish(ctx context.Context, u *uneven) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waited {
		return c.err
	}
	c.waited, c.err = true, c.pending.Wait(ctx)
	if c.err == nil {
		c.err = u.finish(ctx)
	}
	if c.err == nil && c.scale != nil {
		c.scale(u)
	}
	return c.err
}

// awaitStart waits until bucket k has started.
func (b *Buckets[T]) awaitStart(ctx context.Context, k int) error {
	var late <-chan time.Time
	for {
		b.mu.Lock()
		started, failed := b.next > k, b.failed
		b.mu.Unlock()
		if started || failed != nil {
			if late != nil {
				b.wakeOne() // another goroutine may wait, too
			}
			return failed
		}
		if late == nil {
			timer := time.NewTimer(b.o.StallAfter)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			return b.Fail(fmt.Errorf("buckets: wait: %w", context.Cause(ctx)))
		case <-late:
			b.mu.Lock()
			err := fmt.Errorf("buckets: rank %d waits for %s, which nobody made ready in %v", b.comm.Rank(), b.missing(), b.o.StallAfter)
			b.mu.Unlock()
			return b.Fail(err)
		}
	}
}

// wakeOne wakes one of the goroutines waiting for a start.
func (b *Buckets[T]) wakeOne() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// mostNamed bounds the tensors in an error.
const mostNamed = 8

// missing names the tensors not ready. b.mu is held.
func (b *Buckets[T]) missing() string {
	text, n := "tensor", 0
	for _, i := range b.order {
		if !b.ready[i] && b.sizes[i] > 0 {
			if n++; n <= mostNamed {
				text += fmt.Sprintf(" %d", i)
			}
		}
	}
	if n > mostNamed {
		text += fmt.Sprintf(" and %d more", n-mostNamed)
	}
	return text
}

// fail keeps the first failure.
func (b *Buckets[T]) fail(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = err
	}
	return b.failed
}

// Fail breaks the communicator on all ranks: their calls return an error with the reason. It returns
// the first reason given. It is for a step without hope of an end: its buckets are on their way.
func (b *Buckets[T]) Fail(reason error) error {
	reason = b.fail(reason)
	_ = b.comm.Revoke(reason) // of a communicator in use: it is made, and the reason is one
	return reason
}

// Free gives the arena back, and lets the communicator have other buckets. No step may be under
// way. Views must not be used afterwards.
func (b *Buckets[T]) Free() {
	if planner.Free(b.comm, b.arena) {
		claims.Delete(b.claim)
	}
}

// Learn lays the tensors out anew, in the order in which rank 0's became ready in the step
// before. It is a collective, between steps. Views are others afterwards, and hold zeros.
func (b *Buckets[T]) Learn(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	order := make([]int64, len(b.sizes))
	if len(b.arrivals) > 0 || len(b.lastArrivals) == 0 {
		return errors.New("buckets: learn within a step, or before the first; it goes between steps")
	}
	for k := range b.sizes { // empty tensors needn't become ready
		if len(b.lastArrivals) < len(b.sizes) && !slices.Contains(b.lastArrivals, k) {
			b.lastArrivals = append(b.lastArrivals, k)
		}
	}
	for k, i := range b.lastArrivals {
		order[k] = int64(i)
	}
	if err := planner.Bcast(ctx, b.comm, order, 0); err != nil {
		return fmt.Errorf("buckets: learn: %w", err)
	}
	learnt := make([]int, len(order))
	for k, i := range order {
		learnt[k] = int(i)
	}
	old := b.arena
	if err := b.build(learnt); err != nil {
		return fmt.Errorf("buckets: learn: %w", err)
	}
	planner.Free(b.comm, old)
	return nil
}

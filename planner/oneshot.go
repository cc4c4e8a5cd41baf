package planner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/tasks"
)

// oneShots keeps the collectives of a communicator's one-shot calls for calls of equal requests.
type oneShots struct {
	mu     sync.Mutex // held to use cache and recent, and not while a kept collective runs
	cache  cache
	recent [recents]recent // some of the calls in cache, made by PrepareNow

	// scalar is room for the value of the next AllreduceValue; nil: none yet, or in use.
	scalar atomic.Pointer[scalar]
}

// borrow finds or makes a collective for a one-shot call, and marks it as busy.
func (o *oneShots) borrow(r tasks.Request, create func(tasks.Request) (*Collective, error)) (*Collective, error) {
	o.mu.Lock()
	defer o.mu.Unlock() // a call from within an operation panics
	col := o.cache.calls[r]
	if o.cache.calls == nil {
		return nil, fmt.Errorf("%v: %w", r, executor.ErrClosed)
	}
	if col == nil || col.busy {
		var err error
		if col, err = create(r); err != nil {
			return nil, err
		}
		o.keep(r, col)
	}
	col.busy = true
	o.cache.touch(col)
	return col, nil
}

// ready keeps a collective for later calls, made unless there is one.
func (o *oneShots) ready(r tasks.Request, create func(tasks.Request) (*Collective, error)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cache.calls == nil {
		return fmt.Errorf("%v: %w", r, executor.ErrClosed)
	}
	if o.cache.calls[r] != nil {
		return nil
	}
	col, err := create(r)
	if err == nil {
		o.keep(r, col)
	}
	return err
}

// recall marks a recent call's collective as busy and returns it; nil: none is free for this
// request and buffers like these.
func (o *oneShots) recall(r tasks.Request, send, recv []byte) *Collective {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := &o.recent[slotOf(r)]
	if e.col == nil || e.col.busy || o.cache.calls == nil || e.asked != r || len(send) != e.send || len(recv) != e.recv || overlap(send, recv) {
		return nil
	}
	e.col.busy = true
	o.cache.touch(e.col)
	return e.col
}

// note lets recall find the collective of a call that ended well. It is kept for the canonical
// request of what was asked.
func (o *oneShots) note(asked, canonical tasks.Request, send, recv []byte) {
	o.mu.Lock()
	o.recent[slotOf(asked)] = recent{asked: asked, col: o.cache.calls[canonical], send: len(send), recv: len(recv)}
	o.mu.Unlock()
}

// run runs a collective marked as busy, and gives it back.
func (o *oneShots) run(ctx context.Context, col *Collective, send, recv []byte) error {
	err := col.rebind(send, recv)
	if err == nil {
		err = col.Run(ctx)
	}
	o.mu.Lock()
	_ = col.rebind(nil, nil) // lets the caller's buffers go
	col.busy = false
	o.mu.Unlock()
	return err
}

// keep remembers a one-shot call's collective, and forgets others as long as they are too
// many or too large. Forgetting one looks at all of them: far less work than compiling the
// new one. o.mu is held.
func (o *oneShots) keep(r tasks.Request, col *Collective) {
	k := &o.cache
	o.forget(r)
	k.calls[r] = col
	k.bytes += col.run.Footprint()
	k.touch(col)
	for len(k.calls) > keptPrograms || k.bytes > keptBytes && len(k.calls) > 1 {
		o.forget(k.stalest())
	}
}

// forget drops the kept collective of a request, if there is one. o.mu is held.
func (o *oneShots) forget(r tasks.Request) {
	col := o.cache.calls[r]
	if col == nil {
		return
	}
	o.cache.bytes -= col.run.Footprint()
	delete(o.cache.calls, r)
	for i := range o.recent {
		if o.recent[i].col == col {
			o.recent[i] = recent{}
		}
	}
}

// forgetAll drops all kept collectives.
func (o *oneShots) forgetAll() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for r := range o.cache.calls {
		o.forget(r)
	}
}

// swap takes another cache, and puts its own into was, unless it is closed. One-shot calls of other
// goroutines see the caches change together with what also changes.
func (o *oneShots) swap(now, was *cache, also func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	also()
	if o.cache.calls != nil {
		*was, o.cache = o.cache, *now
		o.recent = [recents]recent{}
	}
}

// close drops all kept collectives, and keeps none from now on. It reports whether it was open.
func (o *oneShots) close() (was bool) {
	o.mu.Lock() // calls needn't wait for those of other ranks
	defer o.mu.Unlock()
	was = o.cache.calls != nil
	o.cache.calls = nil
	clear(o.recent[:])
	return was
}

// cache has the kept collectives.
type cache struct {
	calls map[tasks.Request]*Collective // nil when closed
	bytes int64                         // of all: [executor.Run.Footprint]
	clock uint64                        // of uses; each moves it on by one
}

// Bounds of a cache, with programs and memory. The least recently used goes first.
const (
	keptPrograms = 1024
	keptBytes    = 64 << 20 // of programs and scratch together
)

// newCache returns an empty cache.
func newCache() cache { return cache{calls: map[tasks.Request]*Collective{}} }

// touch marks a collective as the last used one.
func (k *cache) touch(col *Collective) {
	k.clock++
	col.used = k.clock
}

// stalest is the request whose collective was used least recently.
func (k *cache) stalest() (r tasks.Request) {
	least := k.clock + 1
	for key, col := range k.calls {
		if col.used < least {
			r, least = key, col.used
		}
	}
	return r
}

// recent is a one-shot call by bytes that ended well. Finding it again takes no look
// at the whole request: that would take longer than a short call.
type recent struct {
	asked      tasks.Request
	col        *Collective // in the cache; nil: none
	send, recv int         // lengths of its buffers
}

// recents is how many of them a communicator remembers.
const (
	recentBits = 6
	recents    = 1 << recentBits
)

// slotOf returns the place of a request among the recent ones.
func slotOf(r tasks.Request) int {
	return int(((uint64(r.Count)<<24 ^ uint64(r.Root)<<8 ^ uint64(r.Coll)) * 0x9e3779b97f4a7c15) >> (64 - recentBits))
}

// scalar has room for any element of a reduction. Such elements hold no pointers; the
// largest are complex128 and a tasks.Loc of 8 bytes.
type scalar [2]uint64

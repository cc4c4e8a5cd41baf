package planner_test

import (
	"fmt"
	"sync"

	"github.com/tierflow/tierflow/planner"
)

// guardLen is how many elements lie on either side of a buffer.
const guardLen = 9

// guarded is a buffer between guards.
type guarded[T comparable] struct {
	all  []T
	data []T
	free func()
	salt uint64
	e    *elements[T]
}

// newGuarded makes one of n elements, of shared memory if the ranks want that.
func (e *elements[T]) newGuarded(p *randomPlayer, n int, shared bool, salt uint64) (*guarded[T], error) {
	g := &guarded[T]{e: e, salt: salt, free: func() {}}
	if g.all = make([]T, n+2*guardLen); shared {
		all, err := planner.Alloc[T](p.comm, len(g.all))
		if err != nil {
			return nil, err
		}
		g.all, g.free = all, sync.OnceFunc(func() {
			if !planner.Free(p.comm, all) {
				p.wrong("Free does not know what Alloc has given")
			}
		})
		p.atEnd(g.free)
	}
	g.data = g.all[guardLen:][:n:n]
	g.scribble()
	return g, nil
}

// scribble fills all of it with values that no call may change.
func (g *guarded[T]) scribble() {
	for i := range g.all {
		g.all[i] = g.e.value(mix(g.salt + uint64(i)))
	}
}

// touched says where it was written although it must not have been: in the guards, and
// from element `from` on to below `to`.
func (g *guarded[T]) touched(from, to int) error {
	for i, got := range g.all {
		at := i - guardLen
		if at >= 0 && at < len(g.data) && (at < from || at >= to) {
			continue
		}
		if want := g.e.value(mix(g.salt + uint64(i))); got != want {
			return fmt.Errorf("element %d of a buffer of %d %v was written: %v, was %v", at, len(g.data), g.e, got, want)
		}
	}
	return nil
}

// let gives the buffer up: nobody may write to it any more. That is looked at now for
// buffers that need it at once, and after a failure at the end of the program.
func (g *guarded[T]) let(p *randomPlayer, what string, failed bool) {
	if !failed {
		g.free()
		return
	}
	g.scribble()
	p.later(func() error {
		defer g.free()
		if err := g.touched(0, len(g.data)); err != nil {
			return fmt.Errorf("%s, after it had returned an error: %w", what, err)
		}
		return nil
	})
}

//go:build cgo

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// handles gives C numbers from 1 on in place of pointers. A number is used once.
type handles[T any] struct {
	what   string
	mu     sync.Mutex
	last   uintptr
	all    map[uintptr]*T
	recent atomic.Pointer[entry[T]] // by the last find: most are of one communicator; nil: none
}

// entry is a number and its pointer.
type entry[T any] struct {
	n uintptr
	x *T
}

var (
	comms = handles[comm]{what: "communicator"}
	runs  = handles[started]{what: "started call"}
)

func (h *handles[T]) add(x *T) uintptr {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[uintptr]*T{}
	}
	h.last++
	h.all[h.last] = x
	return h.last
}

// find returns the pointer of a number.
func (h *handles[T]) find(n uintptr) (*T, error) {
	if f := h.recent.Load(); f != nil && f.n == n {
		return f.x, nil
	}
	h.mu.Lock() // so that remove forgets this entry too
	defer h.mu.Unlock()
	x := h.all[n]
	if x == nil {
		return nil, h.unknown(n)
	}
	h.recent.Store(&entry[T]{n, x})
	return x, nil
}

// remove is find, once.
func (h *handles[T]) remove(n uintptr) (*T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.all[n]
	if x == nil {
		return nil, h.unknown(n)
	}
	delete(h.all, n)
	h.recent.Store(nil)
	return x, nil
}

func (h *handles[T]) unknown(n uintptr) error {
	return fmt.Errorf("%d is no %s: there is none, or it has ended", n, h.what)
}

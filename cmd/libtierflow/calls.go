//go:build cgo

package main

/*
#define TF_TYPES_ONLY
#include "abi/tierflow.h"
*/
import "C"

import (
	"context"
	"fmt"
	"math"
	"time"
	"unsafe"

	_ "github.com/tierflow/tierflow/cmd/libtierflow/abi" // see abi.Header
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// status is a function's result for err.
func status(err error) C.int {
	if err == nil {
		return 0
	}
	setError(err)
	return 1
}

// place is an error if a result has nowhere to go.
func place[T any](name string, p *T) error {
	if p == nil {
		return fmt.Errorf("%s is NULL; it must say where the result goes", name)
	}
	return nil
}

//export tfOpen
func tfOpen(config *C.tf_config, world *C.uintptr_t) C.int {
	if err := place("tf_open: world", world); err != nil {
		return status(err)
	}
	c, err := open(config)
	if err == nil {
		*world = C.uintptr_t(comms.add(c))
	}
	return status(err)
}

//export tfClose
func tfClose(h C.uintptr_t) C.int {
	c, err := comms.remove(uintptr(h))
	if err == nil {
		err = c.close()
	}
	return status(err)
}

// number returns a number of a communicator; -1: there is no such communicator.
func number(h C.uintptr_t, of func(c *comm) int) C.int {
	c, err := comms.find(uintptr(h))
	if err != nil {
		setError(err)
		return -1
	}
	return C.int(of(c))
}

//export tfRank
func tfRank(h C.uintptr_t) C.int { return number(h, func(c *comm) int { return c.Rank() }) }

//export tfSize
func tfSize(h C.uintptr_t) C.int { return number(h, func(c *comm) int { return c.Size() }) }

//export tfNodes
func tfNodes(h C.uintptr_t) C.int {
	return number(h, func(c *comm) int { return c.Topology().Nodes() })
}

//export tfDraw
func tfDraw(h C.uintptr_t, id *C.uint64_t) C.int {
	c, err := comms.find(uintptr(h))
	if err == nil {
		err = place("tf_draw: id", id)
	}
	if err == nil {
		var n uint64
		n, err = raw.DrawID(c.Comm)
		*id = C.uint64_t(n)
	}
	return status(err)
}

//export tfSub
func tfSub(h C.uintptr_t, id C.uint64_t, ranks *C.int, n C.int, sub *C.uintptr_t) C.int {
	c, err := comms.find(uintptr(h))
	if err != nil {
		return status(err)
	}
	if err := place("tf_sub: sub", sub); err != nil {
		return status(err)
	}
	if n < 1 || int(n) > c.Size() || ranks == nil {
		return status(fmt.Errorf("tf_sub: %d ranks at %p; allowed are 1 to %d, not at NULL", n, ranks, c.Size()))
	}
	list := make([]int, n)
	for i, r := range unsafe.Slice(ranks, n) {
		list[i] = int(r)
	}
	made, err := raw.Sub(c.Comm, uint64(id), list)
	if err == nil {
		*sub = C.uintptr_t(comms.add(&comm{Comm: made, progress: c.progress}))
	}
	return status(err)
}

// readCall returns a communicator, and a request of it with the buffers as bytes.
func readCall(h C.uintptr_t, request *C.tf_request, send, recv unsafe.Pointer) (c *comm, r tasks.Request, from, to []byte, err error) {
	if c, err = comms.find(uintptr(h)); err == nil {
		r, from, to, err = c.read(request, send, recv)
	}
	return c, r, from, to, err
}

//export tfCall
func tfCall(h C.uintptr_t, request *C.tf_request, send, recv unsafe.Pointer) C.int {
	return tfCallWithin(h, request, send, recv, 0)
}

//export tfCallWithin
func tfCallWithin(h C.uintptr_t, request *C.tf_request, send, recv unsafe.Pointer, ns C.int64_t) C.int {
	ctx, cancel, err := within(ns)
	if err != nil {
		return status(err)
	}
	defer cancel()
	c, r, from, to, err := readCall(h, request, send, recv)
	if err == nil {
		err = raw.Run(ctx, c.Comm, r, from, to)
	}
	return status(err)
}

// enter returns a communicator, and the context of a call on it with a time limit.
func enter(h C.uintptr_t, ns C.int64_t) (c *comm, ctx context.Context, cancel context.CancelFunc, err error) {
	if c, err = comms.find(uintptr(h)); err == nil {
		ctx, cancel, err = within(ns)
	}
	return c, ctx, cancel, err
}

// within returns a context with a call's time limit in nanoseconds; 0: none.
func within(ns C.int64_t) (context.Context, context.CancelFunc, error) {
	limit := time.Duration(ns)
	switch {
	case ns < 0:
		return nil, nil, fmt.Errorf("a limit of %d ns for a call; allowed are those from 1 on, and 0 for none", ns)
	case ns == 0:
		return context.Background(), func() {}, nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("the limit of %v for a call: %w", limit, context.DeadlineExceeded))
	return ctx, cancel, nil
}

//export tfReady
func tfReady(h C.uintptr_t, request *C.tf_request) C.int {
	c, err := comms.find(uintptr(h))
	if err == nil {
		err = c.ready(request)
	}
	return status(err)
}

//export tfStart
func tfStart(h C.uintptr_t, request *C.tf_request, send, recv unsafe.Pointer, run *C.uintptr_t) C.int {
	if err := place("tf_start: run", run); err != nil {
		return status(err)
	}
	c, r, from, to, err := readCall(h, request, send, recv)
	if err != nil {
		return status(err)
	}
	s, err := c.start(r, from, to)
	return c.keep(s, err, run)
}

// keep gives C the number of what was started, unless its start has failed.
func (c *comm) keep(s running, err error, run *C.uintptr_t) C.int {
	if err == nil {
		*run = C.uintptr_t(runs.add(&started{running: s, progress: c.progress}))
	}
	return status(err)
}

//export tfExchange
func tfExchange(h C.uintptr_t, coll, root C.int, give, get *C.tf_block, run *C.uintptr_t) C.int {
	c, err := comms.find(uintptr(h))
	if err != nil {
		return status(err)
	}
	if run != nil {
		x, err := c.startExchange(tasks.Collective(coll), int(root), give, get)
		return c.keep(x, err, run)
	}
	return status(c.exchange(tasks.Collective(coll), int(root), give, get))
}

//export tfTest
func tfTest(h C.uintptr_t, done *C.int) C.int {
	if err := place("tf_test: done", done); err != nil {
		return status(err)
	}
	*done = 0
	s, err := runs.find(uintptr(h))
	if err != nil {
		return status(err)
	}
	if !s.Done() {
		return 0
	}
	*done = 1
	return tfWait(h)
}

//export tfDone
func tfDone(n C.int, list *C.uintptr_t) C.int {
	switch {
	case n <= 0:
		return -1
	case list == nil:
		return 0
	}
	for i, h := range unsafe.Slice(list, n) {
		if s, err := runs.find(uintptr(h)); err != nil || s.Done() {
			return C.int(i)
		}
	}
	return -1
}

//export tfWait
func tfWait(h C.uintptr_t) C.int {
	s, err := runs.remove(uintptr(h))
	if err == nil {
		err = s.end()
	}
	return status(err)
}

//export tfWaitFor
func tfWaitFor(h C.uintptr_t, ns C.int64_t, done *C.int) C.int {
	if err := place("tf_wait_for: done", done); err != nil {
		return status(err)
	}
	*done = 0
	s, err := runs.find(uintptr(h))
	if err != nil {
		return status(err)
	}
	ctx, cancel, err := within(ns)
	if err != nil {
		return status(err)
	}
	defer cancel()
	if !s.await(ctx) {
		return 0
	}
	*done = 1
	return tfWait(h)
}

//export tfExplain
func tfExplain(h C.uintptr_t, request *C.tf_request, text *C.char, size C.size_t) C.int {
	c, err := comms.find(uintptr(h))
	if err != nil {
		return status(err)
	}
	if text == nil && size > 0 {
		return status(fmt.Errorf("tf_explain: text is NULL; it must say where %d bytes are", size))
	}
	why, err := c.explain(request)
	if err == nil && size > 0 {
		b := unsafe.Slice((*byte)(unsafe.Pointer(text)), int(min(size, math.MaxInt32)))
		b[copy(b[:len(b)-1], why)] = 0
	}
	return status(err)
}

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
	"unsafe"

	_ "github.com/tierflow/tierflow/cmd/libtierflow/abi" // see abi.Header
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

//export tf_error
func tf_error() *C.char { return errorText() }

//export tf_abi
func tf_abi() C.int { return C.TF_ABI }

//export tf_open
func tf_open(config *C.tf_config, world *C.uintptr_t) C.int {
	c, err := open(config)
	if err == nil {
		*world = C.uintptr_t(comms.add(c))
	}
	return status(err)
}

//export tf_close
func tf_close(h C.uintptr_t) C.int {
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

//export tf_rank
func tf_rank(h C.uintptr_t) C.int { return number(h, func(c *comm) int { return c.Rank() }) }

//export tf_size
func tf_size(h C.uintptr_t) C.int { return number(h, func(c *comm) int { return c.Size() }) }

//export tf_nodes
func tf_nodes(h C.uintptr_t) C.int {
	return number(h, func(c *comm) int { return c.Topology().Nodes() })
}

//export tf_draw
func tf_draw(h C.uintptr_t, id *C.uint64_t) C.int {
	c, err := comms.find(uintptr(h))
	if err == nil {
		var n uint64
		n, err = c.DrawID()
		*id = C.uint64_t(n)
	}
	return status(err)
}

//export tf_sub
func tf_sub(h C.uintptr_t, id C.uint64_t, ranks *C.int, n C.int, sub *C.uintptr_t) C.int {
	c, err := comms.find(uintptr(h))
	if err != nil {
		return status(err)
	}
	if n < 1 || ranks == nil {
		return status(fmt.Errorf("sub: %d ranks; allowed are 1 to %d", n, c.Size()))
	}
	list := make([]int, n)
	for i, r := range unsafe.Slice(ranks, n) {
		list[i] = int(r)
	}
	made, err := c.Sub(uint64(id), list)
	if err == nil {
		*sub = C.uintptr_t(comms.add(&comm{Comm: made}))
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

//export tf_call
func tf_call(h C.uintptr_t, request *C.tf_request, send, recv unsafe.Pointer) C.int {
	c, r, from, to, err := readCall(h, request, send, recv)
	if err == nil {
		err = c.PrepareNow(context.Background(), r, from, to)
	}
	return status(err)
}

//export tf_ready
func tf_ready(h C.uintptr_t, request *C.tf_request) C.int {
	c, err := comms.find(uintptr(h))
	if err == nil {
		err = c.ready(request)
	}
	return status(err)
}

//export tf_start
func tf_start(h C.uintptr_t, request *C.tf_request, send, recv unsafe.Pointer, run *C.uintptr_t) C.int {
	c, r, from, to, err := readCall(h, request, send, recv)
	if err != nil {
		return status(err)
	}
	s, err := c.start(r, from, to)
	if err == nil {
		*run = C.uintptr_t(runs.add(s))
	}
	return status(err)
}

//export tf_exchange
func tf_exchange(h C.uintptr_t, coll, root C.int, give, get *C.tf_block, run *C.uintptr_t) C.int {
	c, err := comms.find(uintptr(h))
	if err != nil {
		return status(err)
	}
	if run == nil {
		l := c.borrowLists()
		err = c.ExchangeNow(context.Background(), tasks.Collective(coll), int(root), l.give.of(give), l.get.of(get))
		c.lists.Put(l)
		return status(err)
	}
	l := c.newLists()
	x, err := c.StartExchange(context.Background(), tasks.Collective(coll), int(root), l.give.of(give), l.get.of(get))
	if err == nil {
		*run = C.uintptr_t(runs.add(&started{comm: c, exchange: x}))
	}
	return status(err)
}

//export tf_test
func tf_test(h C.uintptr_t, done *C.int) C.int {
	*done = 0
	s, err := runs.find(uintptr(h))
	if err != nil {
		return status(err)
	}
	if !s.done() {
		return 0
	}
	*done = 1
	return tf_wait(h)
}

//export tf_done
func tf_done(n C.int, list *C.uintptr_t) C.int {
	for i, h := range unsafe.Slice(list, n) {
		if s, err := runs.find(uintptr(h)); err != nil || s.done() {
			return C.int(i)
		}
	}
	return -1
}

//export tf_wait
func tf_wait(h C.uintptr_t) C.int {
	s, err := runs.remove(uintptr(h))
	if err == nil {
		err = s.end()
	}
	return status(err)
}

//export tf_explain
func tf_explain(h C.uintptr_t, request *C.tf_request, text *C.char, size C.size_t) C.int {
	c, err := comms.find(uintptr(h))
	if err != nil {
		return status(err)
	}
	why, err := c.explain(request)
	if err == nil && size > 0 {
		b := unsafe.Slice((*byte)(unsafe.Pointer(text)), int(min(size, math.MaxInt32)))
		b[copy(b[:len(b)-1], why)] = 0
	}
	return status(err)
}

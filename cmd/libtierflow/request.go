//go:build cgo

package main

/*
#define TF_TYPES_ONLY
#include "abi/tierflow.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// ops are the operations by number.
var ops = [...]tasks.Op{
	tasks.OpSum: tasks.Sum, tasks.OpProd: tasks.Prod, tasks.OpMin: tasks.Min, tasks.OpMax: tasks.Max,
	tasks.OpBand: tasks.Band, tasks.OpBor: tasks.Bor, tasks.OpBxor: tasks.Bxor,
	tasks.OpLand: tasks.Land, tasks.OpLor: tasks.Lor, tasks.OpLxor: tasks.Lxor, tasks.OpAverage: tasks.Average,
}

// checkedRequest is a checked request, with the bytes of this rank's buffers.
type checkedRequest struct {
	asked      C.tf_request // without counts
	counts     []int64
	request    tasks.Request
	send, recv int64
}

// knowns is how many requests a communicator remembers: such as those of all roots.
const (
	knownBits = 6
	knowns    = 1 << knownBits
)

// slotOf is the place of a request in comm.known.
func slotOf(q *C.tf_request) uint64 {
	return (uint64(q.count)<<24 ^ uint64(q.root)<<8 ^ uint64(q.coll)) * 0x9e3779b97f4a7c15 >> (64 - knownBits)
}

// look reads a C structure, and returns the lengths of this rank's buffers. It complains of an
// impossible request.
func (c *comm) look(q *C.tf_request) (*checkedRequest, error) {
	if q == nil {
		return nil, errors.New("the request is NULL; it must say which collective is called")
	}
	asked, counts := *q, []int64(nil)
	if q.counts != nil {
		counts = unsafe.Slice((*int64)(unsafe.Pointer(q.counts)), c.Size())
		asked.counts = nil
	}
	at := &c.known[slotOf(q)]
	if k := at.Load(); k != nil && k.asked == asked && slices.Equal(k.counts, counts) {
		return k, nil
	}
	k := &checkedRequest{asked: asked, counts: slices.Clone(counts)}
	r, err := requestOf(q, counts)
	if err == nil {
		k.request, err = raw.Canonical(c.Comm, r)
	}
	if err != nil {
		return nil, err
	}
	k.send, k.recv = k.request.Buffers(levels.Rank(c.Rank()), c.Size())
	at.Store(k)
	return k, nil
}

// requestOf returns the request of a C structure.
func requestOf(q *C.tf_request, counts []int64) (r tasks.Request, err error) {
	r = tasks.Request{
		Coll: tasks.Collective(q.coll), Count: int64(q.count), Type: tasks.Datatype(q._type),
		Root: levels.Rank(q.root), InPlace: q.in_place != 0,
	}
	if int(q.op) < len(ops) {
		r.Op = ops[q.op]
	}
	if counts == nil {
		return r, nil
	}
	list := make([]int, len(counts))
	for i, n := range counts {
		list[i] = int(n)
	}
	if r.Counts, err = tasks.NewCounts(list); err != nil {
		return r, fmt.Errorf("%v: %w", r.Coll, err)
	}
	r.Count = r.Counts.Max()
	return r, nil
}

// read is look, with the buffers as bytes. It drops an unused one.
func (c *comm) read(q *C.tf_request, send, recv unsafe.Pointer) (r tasks.Request, from, to []byte, err error) {
	k, err := c.look(q)
	if err != nil {
		return r, nil, nil, err
	}
	if k.send > 0 && send == nil || k.recv > 0 && recv == nil {
		return k.request, nil, nil, fmt.Errorf("%v: a buffer is NULL; rank %d gives %d bytes to send and %d to receive", k.request, c.Rank(), k.send, k.recv)
	}
	if k.send > 0 {
		from = unsafe.Slice((*byte)(send), k.send)
	}
	if k.recv > 0 {
		to = unsafe.Slice((*byte)(recv), k.recv)
	}
	return k.request, from, to, nil
}

// ready compiles a request.
func (c *comm) ready(q *C.tf_request) error {
	k, err := c.look(q)
	if err != nil {
		return err
	}
	return raw.Ready(context.Background(), c.Comm, k.request)
}

// explain says how a request is done.
func (c *comm) explain(q *C.tf_request) (string, error) {
	k, err := c.look(q)
	if err != nil {
		return "", err
	}
	return raw.Explain(c.Comm, k.request)
}

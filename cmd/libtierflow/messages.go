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

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

// message is what a send or receive moves.
type message struct {
	comm      *comm
	peer, tag int
	elements  // of the buffer
}

// elements is a buffer, with planner's functions for its type of elements.
type elements interface {
	send(ctx context.Context, m *message) error
	recv(ctx context.Context, m *message) (planner.Status, error)
	startSend(ctx context.Context, m *message) (*planner.Transfer, error)
	startRecv(ctx context.Context, m *message) (*planner.Transfer, error)
}

// of is a buffer of elements of one type.
type of[T any] []T

func (b of[T]) send(ctx context.Context, m *message) error {
	return planner.Send(ctx, m.comm.Comm, m.peer, m.tag, b)
}

func (b of[T]) recv(ctx context.Context, m *message) (s planner.Status, err error) {
	if m.peer == C.TF_ANY {
		return planner.RecvAny(ctx, m.comm.Comm, m.tag, b)
	}
	s.Source = m.peer
	s.Count, err = planner.Recv(ctx, m.comm.Comm, m.peer, m.tag, b)
	return s, err
}

func (b of[T]) startSend(ctx context.Context, m *message) (*planner.Transfer, error) {
	return planner.StartSend(ctx, m.comm.Comm, m.peer, m.tag, b)
}

func (b of[T]) startRecv(ctx context.Context, m *message) (*planner.Transfer, error) {
	if m.peer == C.TF_ANY {
		return planner.StartRecvAny(ctx, m.comm.Comm, m.tag, b)
	}
	return planner.StartRecv(ctx, m.comm.Comm, m.peer, m.tag, b)
}

// slice makes a buffer of count elements at an address.
type slice func(at unsafe.Pointer, count int64) elements

func sliceOf[T any](at unsafe.Pointer, count int64) elements {
	if count == 0 {
		return of[T](nil)
	}
	return of[T](unsafe.Slice((*T)(at), count))
}

// slicesOf are those of enum tf_type.
var slicesOf = map[tasks.Datatype]slice{
	tasks.Int8: sliceOf[int8], tasks.Int16: sliceOf[int16], tasks.Int32: sliceOf[int32], tasks.Int64: sliceOf[int64],
	tasks.Uint8: sliceOf[uint8], tasks.Uint16: sliceOf[uint16], tasks.Uint32: sliceOf[uint32], tasks.Uint64: sliceOf[uint64],
	tasks.Float16: sliceOf[half.Float16], tasks.BFloat16: sliceOf[half.BFloat16], tasks.Float32: sliceOf[float32], tasks.Float64: sliceOf[float64],
	tasks.Complex64: sliceOf[complex64], tasks.Complex128: sliceOf[complex128],
}

// readMessage reads the arguments of a send or receive. to says whether peer is the destination.
func readMessage(h C.uintptr_t, name string, peer, tag, kind C.int, buffer unsafe.Pointer, count C.int64_t) (m message, err error) {
	if m.comm, err = comms.find(uintptr(h)); err != nil {
		return m, err
	}
	t := tasks.Datatype(kind)
	switch {
	case kind < C.TF_I8 || kind > C.TF_C128:
		err = fmt.Errorf("%s: type %d; allowed are those of enum tf_type, %d to %d", name, kind, C.TF_I8, C.TF_C128)
	case count < 0 || int64(count) > math.MaxInt64/int64(t.Size()):
		err = fmt.Errorf("%s: count %d; allowed are 0 and more, of less than 2^63 bytes together", name, count)
	case count > 0 && buffer == nil:
		err = fmt.Errorf("%s: the buffer is NULL; it must have %d elements", name, count)
	}
	if err != nil {
		return m, err
	}
	m.peer, m.tag, m.elements = int(peer), int(tag), slicesOf[t](buffer, int64(count))
	return m, nil
}

// note writes what has come to where C wants it; NULL: nowhere.
func note(s planner.Status, to *C.tf_status) {
	if to != nil {
		to.source, to.count = C.int(s.Source), C.int64_t(s.Count)
	}
}

//export tfSend
func tfSend(h C.uintptr_t, to, tag, kind C.int, buffer unsafe.Pointer, count, ns C.int64_t) C.int {
	m, err := readMessage(h, "tf_send", to, tag, kind, buffer, count)
	if err != nil {
		return status(err)
	}
	ctx, cancel, err := within(ns)
	if err == nil {
		err = m.send(ctx, &m)
		cancel()
	}
	return status(err)
}

//export tfRecv
func tfRecv(h C.uintptr_t, from, tag, kind C.int, buffer unsafe.Pointer, count, ns C.int64_t, got *C.tf_status) C.int {
	m, err := readMessage(h, "tf_recv", from, tag, kind, buffer, count)
	if err != nil {
		return status(err)
	}
	ctx, cancel, err := within(ns)
	if err == nil {
		var s planner.Status
		if s, err = m.recv(ctx, &m); err == nil {
			note(s, got)
		}
		cancel()
	}
	return status(err)
}

// startedTransfer is a send or receive on its way.
type startedTransfer struct {
	*planner.Transfer
	receives bool
	got      *C.tf_status
}

//export tfStartSend
func tfStartSend(h C.uintptr_t, to, tag, kind C.int, buffer unsafe.Pointer, count C.int64_t, run *C.uintptr_t) C.int {
	if err := place("tf_start_send: run", run); err != nil {
		return status(err)
	}
	m, err := readMessage(h, "tf_start_send", to, tag, kind, buffer, count)
	if err != nil {
		return status(err)
	}
	t, err := m.startSend(context.Background(), &m)
	return m.comm.keep(&startedTransfer{Transfer: t}, err, run)
}

//export tfStartRecv
func tfStartRecv(h C.uintptr_t, from, tag, kind C.int, buffer unsafe.Pointer, count C.int64_t, got *C.tf_status, run *C.uintptr_t) C.int {
	if err := place("tf_start_recv: run", run); err != nil {
		return status(err)
	}
	m, err := readMessage(h, "tf_start_recv", from, tag, kind, buffer, count)
	if err != nil {
		return status(err)
	}
	t, err := m.startRecv(context.Background(), &m)
	return m.comm.keep(&startedTransfer{Transfer: t, receives: true, got: got}, err, run)
}

// Wait waits for it, and notes what has come.
func (t *startedTransfer) Wait() error {
	n, err := t.Transfer.Wait()
	if err != nil || !t.receives {
		return err
	}
	note(planner.Status{Source: t.Peer(), Count: n}, t.got)
	return nil
}

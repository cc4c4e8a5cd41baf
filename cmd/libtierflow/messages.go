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

// message is what a send or receive moves, with planner's functions for its type of elements.
type message interface {
	send(ctx context.Context) error
	recv(ctx context.Context) (planner.Status, error)
	startSend(ctx context.Context) (*planner.Transfer, error)
	startRecv(ctx context.Context) (*planner.Transfer, error)
}

// messageOf is a message of elements of one type.
type messageOf[T any] struct {
	*comm
	peer, tag int
	buffer    []T
}

func (m messageOf[T]) send(ctx context.Context) error {
	return planner.Send(ctx, m.Comm, m.peer, m.tag, m.buffer)
}

func (m messageOf[T]) recv(ctx context.Context) (s planner.Status, err error) {
	if m.peer == C.TF_ANY {
		return planner.RecvAny(ctx, m.Comm, m.tag, m.buffer)
	}
	s.Source = m.peer
	s.Count, err = planner.Recv(ctx, m.Comm, m.peer, m.tag, m.buffer)
	return s, err
}

func (m messageOf[T]) startSend(ctx context.Context) (*planner.Transfer, error) {
	return planner.StartSend(ctx, m.Comm, m.peer, m.tag, m.buffer)
}

func (m messageOf[T]) startRecv(ctx context.Context) (*planner.Transfer, error) {
	if m.peer == C.TF_ANY {
		return planner.StartRecvAny(ctx, m.Comm, m.tag, m.buffer)
	}
	return planner.StartRecv(ctx, m.Comm, m.peer, m.tag, m.buffer)
}

// newMessage makes a message of count elements at an address.
func newMessage[T any](c *comm, peer, tag int, at unsafe.Pointer, count int64) message {
	m := messageOf[T]{comm: c, peer: peer, tag: tag}
	if count > 0 {
		m.buffer = unsafe.Slice((*T)(at), count)
	}
	return m
}

// newMessages are newMessage of the types of enum tf_type.
var newMessages = map[tasks.Datatype]func(c *comm, peer, tag int, at unsafe.Pointer, count int64) message{
	tasks.Int8: newMessage[int8], tasks.Int16: newMessage[int16], tasks.Int32: newMessage[int32], tasks.Int64: newMessage[int64],
	tasks.Uint8: newMessage[uint8], tasks.Uint16: newMessage[uint16], tasks.Uint32: newMessage[uint32], tasks.Uint64: newMessage[uint64],
	tasks.Float16: newMessage[half.Float16], tasks.BFloat16: newMessage[half.BFloat16], tasks.Float32: newMessage[float32], tasks.Float64: newMessage[float64],
	tasks.Complex64: newMessage[complex64], tasks.Complex128: newMessage[complex128],
}

// readMessage reads the arguments of a send or receive.
func readMessage(h C.uintptr_t, name string, peer, tag, kind C.int, buffer unsafe.Pointer, count C.int64_t) (m message, c *comm, err error) {
	if c, err = comms.find(uintptr(h)); err != nil {
		return nil, nil, err
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
		return nil, nil, err
	}
	return newMessages[t](c, int(peer), int(tag), buffer, int64(count)), c, nil
}

// note writes what has come to where C wants it; NULL: nowhere.
func note(s planner.Status, to *C.tf_status) {
	if to != nil {
		to.source, to.count = C.int(s.Source), C.int64_t(s.Count)
	}
}

//export tfSend
func tfSend(h C.uintptr_t, to, tag, kind C.int, buffer unsafe.Pointer, count, ns C.int64_t) C.int {
	m, _, err := readMessage(h, "tf_send", to, tag, kind, buffer, count)
	if err != nil {
		return status(err)
	}
	ctx, cancel, err := within(ns)
	if err == nil {
		err = m.send(ctx)
		cancel()
	}
	return status(err)
}

//export tfRecv
func tfRecv(h C.uintptr_t, from, tag, kind C.int, buffer unsafe.Pointer, count, ns C.int64_t, got *C.tf_status) C.int {
	m, _, err := readMessage(h, "tf_recv", from, tag, kind, buffer, count)
	if err != nil {
		return status(err)
	}
	ctx, cancel, err := within(ns)
	if err == nil {
		var s planner.Status
		if s, err = m.recv(ctx); err == nil {
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
	m, c, err := readMessage(h, "tf_start_send", to, tag, kind, buffer, count)
	if err != nil {
		return status(err)
	}
	t, err := m.startSend(context.Background())
	return c.keep(&startedTransfer{Transfer: t}, err, run)
}

//export tfStartRecv
func tfStartRecv(h C.uintptr_t, from, tag, kind C.int, buffer unsafe.Pointer, count C.int64_t, got *C.tf_status, run *C.uintptr_t) C.int {
	if err := place("tf_start_recv: run", run); err != nil {
		return status(err)
	}
	m, c, err := readMessage(h, "tf_start_recv", from, tag, kind, buffer, count)
	if err != nil {
		return status(err)
	}
	t, err := m.startRecv(context.Background())
	return c.keep(&startedTransfer{Transfer: t, receives: true, got: got}, err, run)
}

// Wait waits for it, and notes what has come.
func (t *startedTransfer) Wait(ctx context.Context) error {
	n, err := t.Transfer.Wait(ctx)
	if err != nil || !t.receives {
		return err
	}
	note(planner.Status{Source: t.Peer(), Count: n}, t.got)
	return nil
}

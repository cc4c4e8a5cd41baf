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
)

// message is what a send or receive moves.
type message struct {
	comm      *comm
	peer, tag int
	size      int    // of an element
	bytes     []byte // the whole buffer
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
	m.peer, m.tag, m.size = int(peer), int(tag), t.Size()
	if count > 0 {
		m.bytes = unsafe.Slice((*byte)(buffer), int64(count)*int64(m.size))
	}
	return m, nil
}

// note writes what has come, of n bytes, to where C wants it; NULL: nowhere.
func (m *message) note(n, source int, to *C.tf_status) error {
	if n%m.size != 0 {
		return fmt.Errorf("tf_recv: a message of %d bytes from rank %d, tag %d; allowed are whole elements of %d bytes", n, source, m.tag, m.size)
	}
	if to != nil {
		to.source, to.count = C.int(source), C.int64_t(n/m.size)
	}
	return nil
}

//export tfSend
func tfSend(h C.uintptr_t, to, tag, kind C.int, buffer unsafe.Pointer, count, ns C.int64_t) C.int {
	m, err := readMessage(h, "tf_send", to, tag, kind, buffer, count)
	if err != nil {
		return status(err)
	}
	ctx, cancel, err := within(ns)
	if err == nil {
		err = planner.Send(ctx, m.comm.Comm, m.peer, m.tag, m.bytes)
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
		err = m.receive(ctx, got)
		cancel()
	}
	return status(err)
}

// receive waits for the message.
func (m *message) receive(ctx context.Context, got *C.tf_status) (err error) {
	s := planner.Status{Source: m.peer}
	if m.peer == C.TF_ANY {
		s, err = planner.RecvAny(ctx, m.comm.Comm, m.tag, m.bytes)
	} else {
		s.Count, err = planner.Recv(ctx, m.comm.Comm, m.peer, m.tag, m.bytes)
	}
	if err != nil {
		return err
	}
	return m.note(s.Count, s.Source, got)
}

// startedTransfer is a send or receive on its way.
type startedTransfer struct {
	*planner.Transfer
	message
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
	t, err := planner.StartSend(context.Background(), m.comm.Comm, m.peer, m.tag, m.bytes)
	return m.comm.keep(&startedTransfer{Transfer: t, message: m}, err, run)
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
	var t *planner.Transfer
	if m.peer == C.TF_ANY {
		t, err = planner.StartRecvAny(context.Background(), m.comm.Comm, m.tag, m.bytes)
	} else {
		t, err = planner.StartRecv(context.Background(), m.comm.Comm, m.peer, m.tag, m.bytes)
	}
	return m.comm.keep(&startedTransfer{Transfer: t, message: m, receives: true, got: got}, err, run)
}

// Wait waits for it, and notes what has come.
func (t *startedTransfer) Wait() error {
	n, err := t.Transfer.Wait()
	if err != nil || !t.receives {
		return err
	}
	return t.note(n, t.Peer(), t.got)
}

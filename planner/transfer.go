package planner

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Transfer is a point-to-point send or receive on its way.
type Transfer struct {
	t    *executor.Transfer
	size int // of an element
}

// Send sends buf to rank to and returns when buf may be reused. tag, from 0, tells
// messages between the same ranks apart; equal ones arrive in order.
func Send[T any](ctx context.Context, c *Comm, to, tag int, buf []T) error {
	t, err := begin(ctx, c.comm.Send, to, tag, buf)
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

// Recv receives a message with a tag from rank from into buf and returns how many
// elements it had. A message longer than buf is [ErrTruncated].
func Recv[T any](ctx context.Context, c *Comm, from, tag int, buf []T) (int, error) {
	t, err := begin(ctx, c.comm.Recv, from, tag, buf)
	if err != nil {
		return 0, err
	}
	if err := t.Wait(ctx); err != nil {
		return 0, err
	}
	return t.Len() / sizeOf[T](), nil
}

// StartSend is [Send] without waiting. buf must not be changed until Wait has
// returned.
func StartSend[T any](ctx context.Context, c *Comm, to, tag int, buf []T) (*Transfer, error) {
	return started[T](ctx, c.comm.Send, to, tag, buf)
}

// StartRecv is [Recv] without waiting. buf must not be touched until Wait has
// returned.
func StartRecv[T any](ctx context.Context, c *Comm, from, tag int, buf []T) (*Transfer, error) {
	return started[T](ctx, c.comm.Recv, from, tag, buf)
}

type starter func(ctx context.Context, peer levels.Rank, tag int32, buf []byte) (*executor.Transfer, error)

func started[T any](ctx context.Context, start starter, peer, tag int, buf []T) (*Transfer, error) {
	t, err := begin(ctx, start, peer, tag, buf)
	if err != nil {
		return nil, err
	}
	t.Watch(ctx)
	return &Transfer{t, sizeOf[T]()}, nil
}

// begin starts a transfer of elements that may be moved as bytes.
func begin[T any](ctx context.Context, start starter, peer, tag int, buf []T) (*executor.Transfer, error) {
	if _, err := tasks.DatatypeOf[T](); err != nil {
		return nil, err
	}
	if tag < 0 || tag > math.MaxInt32 {
		return nil, fmt.Errorf("tag %d is not between 0 and %d", tag, math.MaxInt32)
	}
	return start(ctx, levels.Rank(peer), int32(tag), asBytes(buf))
}

// Wait blocks until the transfer has ended; a receive tells how many elements
// came.
func (t *Transfer) Wait() (int, error) {
	if err := t.t.Wait(context.Background()); err != nil {
		return 0, fmt.Errorf("point to point: %w", err)
	}
	return t.t.Len() / t.size, nil
}

func sizeOf[T any]() int { return max(1, int(unsafe.Sizeof(*new(T)))) }

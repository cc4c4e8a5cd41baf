package planner

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/tasks"
)

// Transfer is a point-to-point send or receive on its way.
type Transfer struct {
	t    *executor.Transfer
	size int // of an element
}

// Send sends buf to rank to and returns when buf may be reused. tag, from 0, tells
// messages between the same ranks apart; equal ones arrive in order. If ctx ends first the
// communicator breaks on all ranks.
func Send[T any](ctx context.Context, c *Comm, to, tag int, buf []T) error {
	t, err := begin(ctx, c, sends, to, tag, buf)
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

// Recv receives a message with a tag from rank from into buf and returns how many
// elements it had. A message longer than buf is [ErrTruncated], and buf then holds anything. T must
// be the sender's type, by [tasks.ElementOf]: else it is [ErrElements], and buf stays as it is. As in
// MPI bytes are a type like any other; types without operations are the same if they have one
// size, and a message without elements fits any type. Both errors end this receive only: the message
// is gone, and its sender isn't told.
//
// When ctx ends before there is a message, only this call ends: the communicator stays whole, and the message is for
// the next receive. After a deadline of a second or more the error is a [LateError] that says where the sender is. Ranks
// that wait for each other find that out one by one; after the limit of calls all hear of it at once.
// Once the elements of a long message are on their way the communicator breaks on all ranks, as it does after
// [Options.CallTimeout].
func Recv[T any](ctx context.Context, c *Comm, from, tag int, buf []T) (int, error) {
	t, err := begin(ctx, c, receives, from, tag, buf)
	if err != nil {
		return 0, err
	}
	if err := t.Wait(ctx); err != nil {
		return 0, err
	}
	return t.Len() / sizeOf[T](), nil
}

// StartSend is [Send] without waiting. buf must not be changed until Wait has
// returned. If ctx ends before the transfer has the communicator breaks on all ranks.
func StartSend[T any](ctx context.Context, c *Comm, to, tag int, buf []T) (*Transfer, error) {
	return startTransfer(ctx, c, sends, to, tag, buf)
}

// StartRecv is [Recv] without waiting. buf must not be touched until Wait has
// returned. When ctx ends first the receive ends as in Recv.
func StartRecv[T any](ctx context.Context, c *Comm, from, tag int, buf []T) (*Transfer, error) {
	return startTransfer(ctx, c, receives, from, tag, buf)
}

// Status describes a received message.
type Status struct {
	Source int // its sender's rank
	Count  int // its elements
}

// RecvAny receives the next message with a tag into buf, from any rank, this one
// included. Of waiting messages it takes the oldest, so each rank has its turn;
// messages of one rank stay in order. If it and a [Recv] wait for the same message, the
// first called gets it. A message longer than buf is [ErrTruncated] and one of another type
// [ErrElements], naming its sender.
//
// When ctx is cancelled before there is a message, only this call ends: the communicator
// stays whole, and the message is for the next receive, as for Recv. RecvAny returns a [PeerError]
// when a rank fails, and [ErrClosed] when all other ranks have left.
func RecvAny[T any](ctx context.Context, c *Comm, tag int, buf []T) (Status, error) {
	t, err := begin(ctx, c, receivesAny, anyPeer, tag, buf)
	if err == nil {
		if err = t.Wait(ctx); err != nil {
			err = anyFailed(t, tag, err)
		}
	}
	if err != nil {
		return Status{}, err
	}
	return Status{Source: int(t.Peer()), Count: t.Len() / sizeOf[T]()}, nil
}

// StartRecvAny is [RecvAny] without waiting: Wait of the transfer returns the count, and then
// Peer the source. buf must not be touched until Wait has returned. Without a message it
// ends when ctx is cancelled; closing the communicator before is an error.
func StartRecvAny[T any](ctx context.Context, c *Comm, tag int, buf []T) (*Transfer, error) {
	return startTransfer(ctx, c, receivesAny, anyPeer, tag, buf)
}

// anyFailed wraps the error of a receive from any rank, with the message's source if there is one.
func anyFailed(t *executor.Transfer, tag int, err error) error {
	if from := t.Peer(); from >= 0 {
		return fmt.Errorf("%s rank %d, tag %d: %w", receives, from, tag, err)
	}
	return fmt.Errorf("%s, tag %d: %w", receivesAny, tag, err)
}

// way is the kind of a transfer, in the words of errors.
type way string

const (
	sends       way = "send to"
	receives    way = "receive from"
	receivesAny way = "receive from any rank"
)

// with adds the peer.
func (w way) with(peer int) string {
	if w == receivesAny {
		return string(w)
	}
	return fmt.Sprintf("%s rank %d", w, peer)
}

// anyPeer is begin's peer for a receive from any rank.
const anyPeer = 0

func startTransfer[T any](ctx context.Context, c *Comm, w way, peer, tag int, buf []T) (*Transfer, error) {
	t, err := begin(ctx, c, w, peer, tag, buf)
	if err != nil {
		return nil, err
	}
	t.Watch(ctx)
	return &Transfer{t, sizeOf[T]()}, nil
}

// begin starts a transfer. It checks that the elements can be moved as bytes.
func begin[T any](ctx context.Context, c *Comm, w way, peer, tag int, buf []T) (*executor.Transfer, error) {
	if err := c.checkCall(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", w.with(peer), err)
	}
	rank, err := c.rank("rank", peer)
	if err != nil {
		return nil, fmt.Errorf("%s %w", w, err)
	}
	of, err := tasks.ElementOf[T]()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.with(peer), err)
	}
	if tag < 0 || tag > lastTag {
		return nil, fmt.Errorf("%s: tag %d is not between 0 and %d", w.with(peer), tag, lastTag)
	}
	switch w {
	case sends:
		return c.comm.Send(ctx, rank, int32(tag), of, asBytes(buf))
	case receivesAny:
		return c.comm.RecvAny(ctx, int32(tag), of, asBytes(buf))
	}
	return c.comm.RecvAlone(ctx, rank, int32(tag), of, asBytes(buf))
}

// Wait blocks until the transfer has ended; a receive tells how many elements
// came. Waiting again returns the same. If ctx is cancelled first a receive without a message ends alone; else the
// communicator breaks on all ranks.
func (t *Transfer) Wait(ctx context.Context) (int, error) {
	if t == nil || t.t == nil {
		return 0, errNoTransfer
	}
	if err := t.t.Wait(ctx); err != nil {
		return 0, fmt.Errorf("point to point: %w", err)
	}
	return t.t.Len() / t.size, nil
}

// Done reports whether the transfer has ended, and Wait would return at once. An end with an error
// counts too.
func (t *Transfer) Done() bool { return t == nil || t.t == nil || t.t.Done() }

// Peer is the rank at the other end: a send's target, or a receive's source. It is -1 for
// [StartRecvAny] as long as there is no message.
func (t *Transfer) Peer() int {
	if t == nil || t.t == nil {
		return -1
	}
	return int(t.t.Peer())
}

func sizeOf[T any]() int { return max(1, int(unsafe.Sizeof(*new(T)))) }

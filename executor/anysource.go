package executor

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/levels"
)

// RecvAny is [Comm.Recv] of the next message with a tag, whichever rank sends it, this one
// included; Peer of the transfer says which. Of messages that have come the oldest is taken,
// so each rank has its turn, and those of one rank stay in order. A message is given to the
// receive that was posted first, be it from its rank or from any.
//
// Nothing is promised to a rank before it has sent: what arrives is the message itself if it
// is small, else an offer, and only an offer is accepted with the address for its bytes.
//
// When ctx is cancelled before a message was given to the receive, only the receive ends: the
// message that comes is for another one. Later the communicator breaks, as for Recv. It
// also ends when all other ranks have left.
func (c *Comm) RecvAny(ctx context.Context, tag int32, buf []byte) (*Transfer, error) {
	t := &Transfer{ending: newEnding(c), peer: anyRank, tag: tag, buf: buf}
	t.withdraw = t.withdrawRecv
	e := c.e
	e.enter()
	defer crash()
	one, ok, err := c.admitAny(ctx, tag)
	if err != nil {
		e.mu.Unlock()
		return nil, fmt.Errorf("receive from any rank: %w", err)
	}
	e.tickets++
	t.ticket = e.tickets
	e.transfers++
	if ok {
		t.peer = one.from
		c.completeRecv(t, &one.Message, e.store.get(one.block))
		e.store.drop(one.block)
	} else {
		c.wild.push(tag, t)
	}
	e.release()
	return t, nil
}

// admitAny returns why a receive from any rank can't begin, or the message for it if one has
// come. Unlike admitCall it breaks nothing: no rank waits for this one in particular.
func (c *Comm) admitAny(ctx context.Context, tag int32) (one mailed, ok bool, err error) {
	err = c.whyUnusable()
	switch {
	case tag < 0:
		err = fmt.Errorf("tag %d is negative", tag)
	case ctx == nil:
		err = errNoContext
	case err == nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	if err != nil {
		return one, false, err
	}
	if one, ok = c.takeOldest(tag); !ok {
		err = c.whyForsaken()
	}
	return one, ok, err
}

// withdrawRecv ends a receive from any rank to which no message was given.
func (t *Transfer) withdrawRecv(err error) bool {
	if t.peer != anyRank {
		return false
	}
	c := t.comm
	c.wild.drop(func(other *Transfer) bool { return other == t })
	c.endTransfer(t, err)
	c.e.sleeper.Wake() // who drives for it, and nothing else
	return true
}

// Peer returns the rank of the communicator at the other end: that the message goes to or
// is from. It is -1 for a receive from any rank as long as it has none.
func (t *Transfer) Peer() levels.Rank {
	t.comm.e.mu.Lock()
	defer t.comm.e.mu.Unlock()
	if t.peer == anyRank {
		return -1
	}
	return t.comm.numberOf(t.peer)
}

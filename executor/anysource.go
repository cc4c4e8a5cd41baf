package executor

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// RecvAny is [Comm.Recv] of the next message with a tag from any rank, this one included. Peer of
// the transfer names the sender. Among the messages already here the oldest is taken, so each rank
// has its turn, and those of one rank stay in order. A message goes to the receive posted first, be
// it for its rank or for any.
//
// Nothing is promised to a rank before it has sent: a small message arrives whole, a large one as
// an offer, and accepting the offer tells the sender the address for its bytes.
//
// When ctx is cancelled before the receive has a message, only the receive ends, and the next
// message is left for another one. Later the communicator breaks, as for Recv. The receive also
// ends when all other ranks have left.
func (c *Comm) RecvAny(ctx context.Context, tag int32, of tasks.Datatype, buf []byte) (*Transfer, error) {
	t := &Transfer{ending: newEnding(c), peer: anyRank, tag: tag, of: of, buf: buf}
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
		t.completeRecv(&one.Message, e.store.get(one.block))
		e.store.drop(one.block)
	} else {
		c.anyRecvs.push(tag, t)
	}
	e.release()
	return t, nil
}

// admitAny returns the reason why a receive from any rank can't begin, or its message if one is
// here. Unlike admitCall it breaks nothing: no rank waits for this one in particular.
func (c *Comm) admitAny(ctx context.Context, tag int32) (one unclaimedMessage, ok bool, err error) {
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

// withdrawRecv ends a receive from any rank, unless it has a message.
func (t *Transfer) withdrawRecv(err error) bool {
	if t.peer != anyRank {
		return false
	}
	c := t.comm
	c.anyRecvs.drop(func(other *Transfer) bool { return other == t })
	t.end(err)
	c.e.sleeper.Wake() // a goroutine may be driving for this receive alone
	return true
}

// Peer returns the rank of the communicator at the other end, destination or source. It is -1 for a
// receive from any rank without a message.
func (t *Transfer) Peer() levels.Rank {
	t.comm.e.mu.Lock()
	defer t.comm.e.mu.Unlock()
	if t.peer == anyRank {
		return -1
	}
	return t.comm.numberOf(t.peer)
}

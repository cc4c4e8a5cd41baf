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
	t.alone = t
	e := c.e
	e.mu.Lock()
	defer crash()
	err := c.admitAlone(ctx)
	if err == nil && tag < 0 {
		err = fmt.Errorf("tag %d is negative", tag)
	}
	one, ok := unclaimedMessage{}, false
	if err == nil {
		if one, ok = c.takeOldest(tag); !ok {
			err = c.whyForsaken()
		}
	}
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

// admitAlone returns the reason why a receive that may end alone can't begin. Unlike admitCall it breaks nothing: no
// rank waits for it.
func (c *Comm) admitAlone(ctx context.Context) error {
	switch err := c.whyUnusable(); {
	case ctx == nil:
		return errNoContext
	case err == nil && ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return err
	}
}

// withdraw ends a receive, unless it has a message. The lock is held.
func (t *Transfer) withdraw(err error) bool {
	c := t.comm
	is := func(other *Transfer) bool { return other == t }
	if c.anyRecvs.dropOf(t.tag, is)+c.recvs.dropOf(address{t.peer, t.tag}, is) == 0 {
		return false
	}
	t.end(err)
	c.e.sleeper.Wake() // a goroutine may be driving for this receive alone
	return true
}

// withdrawUnlessOver is withdraw, without the lock. It reports whether the receive has ended, by this or before.
func (t *Transfer) withdrawUnlessOver(err error) bool {
	t.comm.e.mu.Lock()
	defer t.comm.e.mu.Unlock()
	return t.finished || t.withdraw(err)
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

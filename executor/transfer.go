package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// ErrTruncated is returned by a receive with a buffer smaller than the message.
var ErrTruncated = errors.New("message is longer than the buffer")

// ErrElements is returned by a receive of elements of another type than the message's. Nothing is received.
var ErrElements = errors.New("message has elements of another type")

// Send starts sending buf to a rank of the communicator. buf must not be changed
// before the transfer has ended; tag is not negative. The receive must be of the same type of
// elements, 0 being one, too; only a message without bytes fits any.
func (c *Comm) Send(ctx context.Context, to levels.Rank, tag int32, of tasks.Datatype, buf []byte) (*Transfer, error) {
	t, err := c.newTransfer(ctx, "send to", to, tag, of, buf, c.admitCall)
	if err != nil {
		return nil, err
	}
	e := c.e
	e.mu.Lock()
	defer crash()
	if err := c.whyUnreachable(t.peer); err != nil {
		e.mu.Unlock()
		return nil, fmt.Errorf("send to rank %d: %w", to, err)
	}
	n, small := int64(len(buf)), e.world.limits.EagerMax
	if e.peers.at(t.peer).far {
		small = e.world.limits.FarMax()
	}
	p := e.peers.at(t.peer)
	p.outTicket++
	t.ticket = p.outTicket
	if n <= small && p.Charge(n) {
		e.transmit(t.peer, &wire.Message{Kind: wire.Tagged, Comm: c.id, Tag: tag, Digest: uint32(of), Size: n, SendTicket: t.ticket}, buf)
		t.close(nil)
	} else {
		addTransfer(&c.sends, t)
		e.transfers++
		e.transmit(t.peer, &wire.Message{Kind: wire.Offer, Comm: c.id, Tag: tag, Digest: uint32(of), Size: n, SendTicket: t.ticket}, nil)
	}
	e.release()
	return t, nil
}

// Recv starts receiving elements of a type into buf from a rank of the communicator. buf must not be
// touched before the transfer has ended.
func (c *Comm) Recv(ctx context.Context, from levels.Rank, tag int32, of tasks.Datatype, buf []byte) (*Transfer, error) {
	t, err := c.newTransfer(ctx, "receive from", from, tag, of, buf, c.admitCall)
	if err != nil {
		return nil, err
	}
	return t.post()
}

// RecvAlone is [Comm.Recv] of which nobody else knows: when its context ends before it has a message, only
// the receive ends. The communicator stays whole, and the next message is left for another receive. With its bytes on
// their way it breaks the communicator all the same, and so does [Config.CallTimeout].
func (c *Comm) RecvAlone(ctx context.Context, from levels.Rank, tag int32, of tasks.Datatype, buf []byte) (*Transfer, error) {
	t, err := c.newTransfer(ctx, "receive from", from, tag, of, buf, c.admitAlone)
	if err != nil {
		return nil, err
	}
	t.alone = t
	return t.post()
}

// post gives a receive its message, or lets it wait for one.
func (t *Transfer) post() (*Transfer, error) {
	c, e := t.comm, t.comm.e
	e.mu.Lock()
	defer crash()
	at := address{t.peer, t.tag}
	err := c.whyUnusable()
	if err == nil && c.unclaimed.first(at) == nil {
		err = c.whyUnreachable(t.peer)
	}
	if err != nil {
		e.mu.Unlock()
		return nil, fmt.Errorf("receive from rank %d: %w", c.numberOf(t.peer), err)
	}
	e.tickets++
	t.ticket = e.tickets
	e.transfers++
	if m, ok := c.unclaimed.pop(at); ok {
		t.completeRecv(&m.Message, e.store.get(m.block))
		e.store.drop(m.block)
	} else {
		c.recvs.push(at, t)
	}
	e.release()
	return t, nil
}

// newTransfer returns a transfer before its begin, if it can begin. admit is called with the lock.
func (c *Comm) newTransfer(
	ctx context.Context, what string, peer levels.Rank, tag int32, of tasks.Datatype, buf []byte, admit func(context.Context) error,
) (*Transfer, error) {
	switch {
	case peer < 0 || int(peer) >= c.Size():
		return nil, fmt.Errorf("%s rank %d: ranks are 0 to %d", what, peer, c.Size()-1)
	case tag < 0:
		return nil, fmt.Errorf("%s rank %d: tag %d is negative", what, peer, tag)
	}
	c.e.mu.Lock()
	err := admit(ctx)
	c.e.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s rank %d: %w", what, peer, err)
	}
	return &Transfer{ending: newEnding(c), peer: c.ranks[peer], tag: tag, of: of, buf: buf}, nil
}

// deliverTransfer takes a point-to-point message.
func (c *Comm) deliverTransfer(from levels.Rank, m *wire.Message, payload []byte) {
	switch m.Kind {
	case wire.Tagged, wire.Offer:
		at := address{from, m.Tag}
		if t := c.takeRecv(at); t != nil {
			t.completeRecv(m, payload)
			return
		}
		c.keep(at, earlyMessage{*m, from, c.e.store.keep(payload)})
	case wire.Accept:
		if t := takeTransfer(c.sends, from, m.SendTicket); t != nil {
			t.sendAccepted(m)
		}
	case wire.Arrived:
		takeTransfer(c.movingRecvs, from, m.RecvTicket).end(nil)
	}
}

// sendAccepted sends the bytes of an offer. If the message doesn't fit none are wanted, and its
// receive is over: nothing is sent, for the receiver may be on its way out.
func (t *Transfer) sendAccepted(m *wire.Message) {
	c := t.comm
	switch n := int64(len(t.buf)); {
	case m.Size == 0 && n > 0:
		t.end(nil)
	case m.Size != n:
		err := fmt.Errorf("%w: rank accepts %d bytes of a message of %d", ErrProtocol, m.Size, n)
		c.blameRank(t.peer, err)
		t.end(err)
	default:
		arrived := wire.Message{Kind: wire.Arrived, Comm: c.id, RecvTicket: m.RecvTicket, Size: m.Size, Addr: m.Addr}
		if c.e.transmitFrom(t.peer, &arrived, t.buf, putOwner{transfer: t}) {
			t.end(nil)
		}
	}
}

// placeTransfer returns the destination of a large message's bytes, nil if nobody wants them.
func (m *mail) placeTransfer(from levels.Rank, part *wire.Message) []byte {
	if t := m.movingRecvs[ticket{from, part.RecvTicket}]; t != nil && int64(t.n) == part.Size {
		return t.buf[part.Offset:]
	}
	return nil
}

// completeRecv gives a receive in no list its message.
func (t *Transfer) completeRecv(m *wire.Message, payload []byte) {
	c, e := t.comm, t.comm.e
	misfit := t.whyUnfit(m)
	if m.Kind == wire.Tagged {
		if !errors.Is(misfit, ErrElements) {
			t.n = copy(t.buf, payload)
		}
		e.consume(t.peer, len(payload))
		t.end(misfit)
		return
	}
	// The sender gets the address for the bytes and the ticket of the receive. A message that
	// doesn't fit is accepted and dropped.
	accept := wire.Message{Kind: wire.Accept, Comm: c.id, SendTicket: m.SendTicket, RecvTicket: t.ticket, Size: m.Size}
	if misfit != nil {
		accept.Size = 0
	} else {
		t.n = int(m.Size)
		addTransfer(&c.movingRecvs, t)
		if m.Size > 0 {
			accept.Addr = wire.Start(t.buf)
		}
	}
	e.transmit(t.peer, &accept, nil)
	if misfit != nil {
		t.end(misfit)
	}
}

// whyUnfit returns the reason why a message doesn't fit a receive, nil if it does.
func (t *Transfer) whyUnfit(m *wire.Message) error {
	if sent := tasks.Datatype(m.Digest); sent != t.of && m.Size > 0 {
		c := t.comm
		return fmt.Errorf("%w: rank %d sends %v, and rank %d receives %v with tag %d", ErrElements, c.numberOf(t.peer), sent, c.me, t.of, t.tag)
	}
	if m.Size > int64(len(t.buf)) {
		size, unit := int64(t.of.Size()), "elements"
		if size == 0 {
			size, unit = 1, "bytes"
		}
		return fmt.Errorf("%w: %d %s into %d", ErrTruncated, m.Size/size, unit, int64(len(t.buf))/size)
	}
	return nil
}

// whyUnreachable returns the reason why nothing can be sent to a rank, or nothing more will come
// from it; nil if it can.
func (c *Comm) whyUnreachable(peer levels.Rank) error {
	if err := c.whyUnusable(); err != nil {
		return err
	}
	if !c.isPresent(peer) {
		return c.failure(peer, errHasClosed)
	}
	return nil
}

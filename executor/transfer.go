package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// ErrTruncated is returned by a receive whose buffer is smaller than the message.
var ErrTruncated = errors.New("message is longer than the buffer")

// Send starts sending buf to a rank of the communicator. buf must not be changed
// before the transfer has ended; tag is not negative.
func (c *Comm) Send(ctx context.Context, to levels.Rank, tag int32, buf []byte) (*Transfer, error) {
	t, err := c.newTransfer(ctx, "send to", to, tag, buf)
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
	if e.peers[t.peer].far {
		small = e.world.limits.FarMax()
	}
	p := &e.peers[t.peer]
	p.said++
	t.ticket = p.said
	if n <= small && p.Charge(n) {
		e.transmit(t.peer, &wire.Message{Kind: wire.Tagged, Comm: c.id, Tag: tag, Size: n, SendTicket: t.ticket}, buf)
		t.close(nil)
	} else {
		addTransfer(&c.sends, t)
		e.transfers++
		e.transmit(t.peer, &wire.Message{Kind: wire.Offer, Comm: c.id, Tag: tag, Size: n, SendTicket: t.ticket}, nil)
	}
	e.release()
	return t, nil
}

// Recv starts receiving into buf from a rank of the communicator. buf must not be
// touched before the transfer has ended.
func (c *Comm) Recv(ctx context.Context, from levels.Rank, tag int32, buf []byte) (*Transfer, error) {
	t, err := c.newTransfer(ctx, "receive from", from, tag, buf)
	if err != nil {
		return nil, err
	}
	e := c.e
	e.mu.Lock()
	defer crash()
	at := address{t.peer, tag}
	err = c.whyUnusable()
	if err == nil && !c.came.has(at) {
		err = c.whyUnreachable(t.peer)
	}
	if err != nil {
		e.mu.Unlock()
		return nil, fmt.Errorf("receive from rank %d: %w", from, err)
	}
	e.tickets++
	t.ticket = e.tickets
	e.transfers++
	if m, ok := c.came.pop(at); ok {
		c.completeRecv(t, &m.Message, e.store.get(m.block))
		e.store.drop(m.block)
	} else {
		c.recvs.push(at, t)
	}
	e.release()
	return t, nil
}

// newTransfer returns a transfer that has not begun, if one can.
func (c *Comm) newTransfer(ctx context.Context, what string, peer levels.Rank, tag int32, buf []byte) (*Transfer, error) {
	switch {
	case peer < 0 || int(peer) >= c.Size():
		return nil, fmt.Errorf("%s rank %d: ranks are 0 to %d", what, peer, c.Size()-1)
	case tag < 0:
		return nil, fmt.Errorf("%s rank %d: tag %d is negative", what, peer, tag)
	}
	c.e.enter()
	err := c.admitCall(ctx)
	c.e.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s rank %d: %w", what, peer, err)
	}
	return &Transfer{ending: newEnding(c), peer: c.ranks[peer], tag: tag, buf: buf}, nil
}

// deliverTransfer takes a point-to-point message.
func (c *Comm) deliverTransfer(from levels.Rank, m *wire.Message, payload []byte) {
	switch m.Kind {
	case wire.Tagged, wire.Offer:
		at := address{from, m.Tag}
		if t := c.takeRecv(at); t != nil {
			c.completeRecv(t, m, payload)
			return
		}
		c.keep(at, earlyMessage{*m, from, c.e.store.keep(payload)})
	case wire.Accept:
		if t := takeTransfer(c.sends, from, m.SendTicket); t != nil {
			c.sendAccepted(t, m)
		}
	case wire.Arrived:
		c.endTransfer(takeTransfer(c.given, from, m.RecvTicket), nil)
	}
}

// sendAccepted sends the bytes of an offer. Of a message that doesn't fit none are
// wanted, and its receive is over: nothing is sent, for the receiver may be on its way
// out.
func (c *Comm) sendAccepted(t *Transfer, m *wire.Message) {
	switch n := int64(len(t.buf)); {
	case m.Size == 0 && n > 0:
		c.endTransfer(t, nil)
	case m.Size != n:
		err := fmt.Errorf("%w: rank accepts %d bytes of a message of %d", ErrProtocol, m.Size, n)
		c.blameRank(t.peer, err)
		c.endTransfer(t, err)
	default:
		arrived := wire.Message{Kind: wire.Arrived, Comm: c.id, RecvTicket: m.RecvTicket, Size: m.Size, Addr: m.Addr}
		if c.e.transmitFrom(t.peer, &arrived, t.buf, putter{transfer: t}) {
			c.endTransfer(t, nil)
		}
	}
}

// placeTransfer returns where the bytes of a large message go, nil if nobody wants
// them.
func (c *Comm) placeTransfer(from levels.Rank, m *wire.Message) []byte {
	if t := c.given[ticket{from, m.RecvTicket}]; t != nil && int64(t.n) == m.Size {
		return t.buf[m.Offset:]
	}
	return nil
}

// completeRecv gives a receive, which is in no list, the message it asked for.
func (c *Comm) completeRecv(t *Transfer, m *wire.Message, payload []byte) {
	e := c.e
	short := m.Size > int64(len(t.buf))
	if m.Kind == wire.Tagged {
		t.n = copy(t.buf, payload)
		e.consume(t.peer, len(payload))
		c.endTransfer(t, whyTruncated(short, m.Size, len(t.buf)))
		return
	}
	// The sender gets the address for the bytes and the ticket of the receive. A
	// message that doesn't fit is accepted and dropped.
	accept := wire.Message{Kind: wire.Accept, Comm: c.id, SendTicket: m.SendTicket, RecvTicket: t.ticket, Size: m.Size}
	if short {
		accept.Size = 0
	} else {
		t.n = int(m.Size)
		addTransfer(&c.given, t)
		if m.Size > 0 {
			accept.Addr = wire.Start(t.buf)
		}
	}
	e.transmit(t.peer, &accept, nil)
	if short {
		c.endTransfer(t, whyTruncated(short, m.Size, len(t.buf)))
	}
}

// whyTruncated returns the error of a receive whose buffer is too short, nil otherwise.
func whyTruncated(short bool, size int64, buf int) error {
	if !short {
		return nil
	}
	return fmt.Errorf("%w: %d bytes into %d", ErrTruncated, size, buf)
}

// whyUnreachable returns why nothing can be sent to a rank, or nothing more will come
// from it; nil if it can.
func (c *Comm) whyUnreachable(peer levels.Rank) error {
	if err := c.whyUnusable(); err != nil {
		return err
	}
	if !c.isPresent(peer) {
		return c.failure(peer, ErrClosed)
	}
	return nil
}

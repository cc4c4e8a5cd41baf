package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/levels"
)

// ErrTruncated is returned by a receive whose buffer is smaller than the message.
var ErrTruncated = errors.New("message is longer than the buffer")

// Transfer is a point-to-point send or receive on its way. Messages between two
// ranks with the same tag arrive in the order in which they were sent.
type Transfer struct {
	ending
	peer   levels.Rank // of the world
	tag    int32
	buf    []byte
	n      int
	ticket uint32 // a send's: how many went to the peer; a receive's: how many this rank posted
	given  bool   // a receive has its message, whose bytes are on their way
}

// Len is the bytes received, after Wait.
func (t *Transfer) Len() int { return t.n }

// Send starts sending buf to a rank of the communicator. buf must not be changed
// before the transfer has ended; tag is not negative.
func (c *Comm) Send(ctx context.Context, to levels.Rank, tag int32, buf []byte) (*Transfer, error) {
	t, err := c.transfer(ctx, "send to", to, tag, buf)
	if err != nil {
		return nil, err
	}
	e := c.e
	e.mu.Lock()
	if err := c.reachable(t.peer, false); err != nil {
		e.mu.Unlock()
		return nil, fmt.Errorf("send to rank %d: %w", to, err)
	}
	n, small := int64(len(buf)), e.world.config.EagerMax
	if e.transport.remote(t.peer) {
		small = e.world.config.farMax()
	}
	p := &e.peers[t.peer]
	p.said++
	t.ticket = p.said
	if n <= small && p.budget >= n+eagerOverhead {
		p.budget -= n + eagerOverhead
		e.out = message{kind: taggedKind, comm: c.id, edge: tag, size: n, ticket: t.ticket}
		e.post(t.peer, buf)
		t.close(nil)
	} else {
		c.sends = append(c.sends, t)
		e.transfers++
		e.out = message{kind: offerKind, comm: c.id, edge: tag, size: n, ticket: t.ticket}
		e.post(t.peer, nil)
	}
	e.release()
	return t, nil
}

// Recv starts receiving into buf from a rank of the communicator. buf must not be
// touched before the transfer has ended.
func (c *Comm) Recv(ctx context.Context, from levels.Rank, tag int32, buf []byte) (*Transfer, error) {
	t, err := c.transfer(ctx, "receive from", from, tag, buf)
	if err != nil {
		return nil, err
	}
	e := c.e
	e.mu.Lock()
	i := slices.IndexFunc(c.came, func(m earlyMessage) bool { return m.from == t.peer && m.edge == tag })
	err = c.usable()
	if err == nil && i < 0 {
		err = c.reachable(t.peer, true)
	}
	if err != nil {
		e.mu.Unlock()
		return nil, fmt.Errorf("receive from rank %d: %w", from, err)
	}
	e.tickets++
	t.ticket = e.tickets
	c.recvs = append(c.recvs, t)
	e.transfers++
	if i >= 0 {
		m := c.came[i]
		c.came = slices.Delete(c.came, i, i+1)
		c.match(t, &m.message, e.store.get(m.block))
		e.store.drop(m.block)
	}
	e.release()
	return t, nil
}

func (c *Comm) transfer(ctx context.Context, what string, peer levels.Rank, tag int32, buf []byte) (*Transfer, error) {
	switch {
	case peer < 0 || int(peer) >= c.Size():
		return nil, fmt.Errorf("%s rank %d: ranks are 0 to %d", what, peer, c.Size()-1)
	case tag < 0:
		return nil, fmt.Errorf("%s rank %d: tag %d is negative", what, peer, tag)
	}
	c.e.mu.Lock()
	err := c.admit(ctx)
	c.e.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s rank %d: %w", what, peer, err)
	}
	return &Transfer{ending: newEnding(c), peer: c.ranks[peer], tag: tag, buf: buf}, nil
}

// Watch lets the transfer go on without a goroutine in Wait.
func (t *Transfer) Watch(ctx context.Context) { t.watch(ctx) }

// deliverTransfer takes a point-to-point message.
func (c *Comm) deliverTransfer(from levels.Rank, m *message, payload []byte) {
	switch m.kind {
	case taggedKind, offerKind:
		i := slices.IndexFunc(c.recvs, func(t *Transfer) bool { return t.peer == from && t.tag == m.edge && !t.given })
		if i < 0 {
			c.came = append(c.came, earlyMessage{*m, from, c.e.store.keep(payload)})
			return
		}
		c.match(c.recvs[i], m, payload)
	case acceptKind:
		t := take(&c.sends, from, m.ticket)
		c.e.out = message{kind: arrivedKind, comm: c.id, ticket: m.seq, size: m.size, addr: m.addr}
		if t != nil && m.size > int64(len(t.buf)) {
			err := fmt.Errorf("%w: rank accepts %d bytes of a message of %d", ErrProtocol, m.size, len(t.buf))
			c.blame(from, err)
			c.endTransfer(t, err)
			return
		}
		if t != nil && c.e.put(from, t.buf[:m.size], putter{transfer: t}) {
			c.endTransfer(t, nil)
		}
	case arrivedKind:
		c.endTransfer(take(&c.recvs, from, m.ticket), nil)
	}
}

// placeTransfer is where the bytes of a large message go.
func (c *Comm) placeTransfer(from levels.Rank, m *message) []byte {
	for _, t := range c.recvs {
		if t.peer == from && t.ticket == m.ticket && t.given && int64(t.n) == m.size {
			return t.buf[m.offset:]
		}
	}
	return nil
}

// match gives a posted receive the message it asked for.
func (c *Comm) match(t *Transfer, m *message, payload []byte) {
	e := c.e
	short := m.size > int64(len(t.buf))
	if m.kind == taggedKind {
		t.n = copy(t.buf, payload)
		e.consumed(t.peer, len(payload))
		take(&c.recvs, t.peer, t.ticket)
		c.endTransfer(t, truncated(short, m.size, len(t.buf)))
		return
	}
	// The sender hears where to put the bytes, and by which ticket to call the
	// receive; a message that doesn't fit is accepted and dropped.
	e.out = message{kind: acceptKind, comm: c.id, ticket: m.ticket, seq: t.ticket, size: m.size}
	if short {
		e.out.size = 0
	} else {
		t.n, t.given = int(m.size), true
		if m.size > 0 {
			e.out.addr = pointer(t.buf)
		}
	}
	e.post(t.peer, nil)
	if short {
		take(&c.recvs, t.peer, t.ticket)
		c.endTransfer(t, truncated(short, m.size, len(t.buf)))
	}
}

func truncated(short bool, size int64, buf int) error {
	if !short {
		return nil
	}
	return fmt.Errorf("%w: %d bytes into %d", ErrTruncated, size, buf)
}

// take removes the transfer with a rank that has a ticket, nil if it is gone.
func take(list *[]*Transfer, peer levels.Rank, ticket uint32) *Transfer {
	i := slices.IndexFunc(*list, func(t *Transfer) bool { return t.peer == peer && t.ticket == ticket })
	if i < 0 {
		return nil
	}
	t := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return t
}

func (c *Comm) endTransfer(t *Transfer, err error) {
	if t != nil {
		c.e.transfers--
		t.close(err)
	}
}

// endTransfers ends all of them when the communicator breaks.
func (c *Comm) endTransfers(err error) {
	for _, t := range slices.Concat(c.sends, c.recvs) {
		c.endTransfer(t, err)
	}
	c.sends, c.recvs = nil, nil
}

// reachable is why nothing can be sent to a rank, or nothing will come from it;
// nil if it can.
func (c *Comm) reachable(peer levels.Rank, hear bool) error {
	if err := c.usable(); err != nil {
		return err
	}
	if slices.ContainsFunc(c.gone, func(d departure) bool { return d.rank == peer && (d.silent || !hear) }) {
		return c.failure(peer, ErrClosed)
	}
	return nil
}

// abandon ends the transfers that a rank which has left will not answer.
func (c *Comm) abandon(d departure) {
	lost := func(t *Transfer) bool {
		if t.peer != d.rank || t.given {
			return false
		}
		c.endTransfer(t, c.failure(d.rank, ErrClosed))
		return true
	}
	c.sends = slices.DeleteFunc(c.sends, lost)
	if d.silent {
		c.recvs = slices.DeleteFunc(c.recvs, lost)
	}
}

package wire

import (
	"bytes"
	"fmt"

	"github.com/tierflow/tierflow/levels"
)

// outgoing is a large payload on its way.
type Outgoing struct {
	Message Message
	Src     []byte
	Sent    int
	Token   int32
}

// dropBulk drops what has failed of a link's payloads, but gives back what those would
// have that have not begun. One that goes without credit leaves all the same, from a copy:
// it is charged, and the peer, which may not have failed, may take it.
func DropBulk(bulk *Fifo[Outgoing], what Scope, s Sink, post func(m *Message, payload []byte)) {
	refund, all := int32(0), bulk.All()
	for i := range all {
		if b := &all[i]; what.Has(&b.Message) && !b.Message.Kind.IsLarge() {
			b.Src = bytes.Clone(b.Src)
		}
	}
	bulk.Drop(func(b Outgoing) bool {
		if !what.Has(&b.Message) || !b.Message.Kind.IsLarge() {
			return false
		}
		if b.Sent == 0 {
			refund += b.Message.Refund
		}
		s.Sent(b.Token)
		return true
	})
	if refund > 0 {
		post(&Message{Kind: Return, Refund: refund}, nil)
	}
}

// giveBack passes on the budget that came with a large payload's first part, in the
// memory of its message: a new one would be an allocation.
func GiveBack(s Sink, from levels.Rank, m *Message) {
	if m.Refund > 0 {
		whole := *m
		*m = Message{Kind: Return, Refund: m.Refund}
		s.Deliver(from, m, nil)
		*m, m.Refund = whole, 0
	}
}

// parts is how far a large payload has come that a link cuts. Its parts come one
// after the other, none of them shorter than it could be; one that a failed
// communicator let go of is followed by the beginning of another.
type Parts struct {
	of   Message // without what differs between them
	next int64   // where the next one begins; 0: there is none
}

// follow takes a part of n bytes in, of most bytes at most, or refuses it.
func (p *Parts) Follow(m *Message, n, most int64) error {
	of := *m
	of.Offset, of.Refund = 0, 0
	if n != min(most, m.Size-m.Offset) || m.Offset > 0 && (m.Offset != p.next || of != p.of) {
		return fmt.Errorf("%w: %v message with %d bytes at %d of %d where %d follow", ErrProtocol, m.Kind, n, m.Offset, m.Size, p.next)
	}
	p.of, p.next = of, m.Offset+n
	if p.next == m.Size {
		p.next = 0
	}
	return nil
}

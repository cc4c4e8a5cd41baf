package wire

import (
	"bytes"
	"fmt"

	"github.com/tierflow/tierflow/levels"
)

// Outgoing is a large payload on its way.
type Outgoing struct {
	Message Message
	Src     []byte
	Gone    int   // bytes of Src already on the way; 0 <= Gone <= len(Src)
	Token   int32 // for [Sink.Sent], when all have
}

// Queue puts a large payload behind all begun ones and all as urgent: parts of one follow
// each other.
func Queue(bulk *Fifo[Outgoing], o Outgoing) {
	all := bulk.All()
	at := len(all)
	for at > 0 && all[at-1].Gone == 0 && all[at-1].Message.Urgency < o.Message.Urgency {
		at--
	}
	bulk.Insert(at, o)
}

// DropBulk drops a link's large payloads in scope. With payloads not yet begun their
// refunds would be lost, so it posts these. A payload without credit stays, as a copy: it
// is charged, and the peer may take it, for it may not have failed.
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
		if b.Gone == 0 {
			refund += b.Message.Refund
		}
		s.Sent(b.Token)
		return true
	})
	if refund > 0 {
		post(&Message{Kind: Return, Refund: refund}, nil)
	}
}

// GiveBack delivers the budget in the first part of a large payload, and takes
// it out of m. It uses the memory of m: a new message would be an allocation.
func GiveBack(s Sink, from levels.Rank, m *Message) {
	if m.Refund > 0 {
		whole := *m
		*m = Message{Kind: Return, Refund: m.Refund}
		s.Deliver(from, m, nil)
		*m, m.Refund = whole, 0
	}
}

// Parts is how much has come of a large payload, cut by a link. Its parts come one after
// the other, and none is shorter than it could be. The sender lets go of a payload when its
// communicator fails: then the first part of another one follows. The zero
// value waits for a first part.
type Parts struct {
	of   Message // without the fields that differ between parts
	next int64   // offset of the next one; 0: it begins another payload
}

// Follow takes in a part of n bytes, of parts of at most most bytes. A part out of place
// is an error that wraps [ErrProtocol].
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

package wire

import (
	"errors"
	"fmt"
	"unsafe"
)

// ErrProtocol is wrapped by the errors of a link after an impossible message from its peer.
var ErrProtocol = errors.New("protocol error")

// Kind is the meaning of a message. The zero value is invalid.
type Kind uint8

// The kinds of messages. Those from Tagged on are point-to-point, the others are a run's.
const (
	_       Kind = iota
	Eager        // payload of a send without credit
	Data         // a large payload is in its place
	Credit       // a recv is ready: Addr is the place for its bytes
	Want         // an eager send has no budget left and asks for credit
	Notify       // a notify; Addr is the exposed memory
	Return       // gives back eager budget, nothing else
	Probe        // "I am at this request": finds disagreeing ranks
	Bye          // the rank has left the communicator after Seq runs
	Tagged       // payload of a small point-to-point send
	Offer        // a large point-to-point send is ready
	Accept       // its recv: Addr is the place for the bytes
	Arrived      // its bytes are there
	MaxKind      // behind the last kind
)

var kindNames = [MaxKind]string{
	Eager: "eager", Data: "data", Credit: "credit", Want: "want",
	Notify: "notify", Return: "return", Probe: "probe",
	Bye: "bye", Tagged: "tagged", Offer: "offer", Accept: "accept", Arrived: "arrived",
}

// String returns the kind's name.
func (k Kind) String() string {
	if k == 0 || k >= MaxKind {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// IsLarge reports whether payloads of this kind move in parts, straight to their place.
func (k Kind) IsLarge() bool { return k == Data || k == Arrived }

// IsPointToPoint reports whether it is of a transfer, not of a run.
func (k Kind) IsPointToPoint() bool { return k >= Tagged && k < MaxKind }

// Message is one message between engines. Runs are named by (Comm, Seq, Pass), steps by
// the edge between the two ranks; transfers by tickets, counted by each rank for itself.
// Fields without use for its kind are zero.
type Message struct {
	Kind   Kind
	Broken bool   // Bye: the communicator, or another one if it is that of all ranks, is broken on the leaving rank
	Onward bool   // Bye: the leaving rank goes on with others on another communicator
	Comm   CommID // zero in a Return: it is for all communicators

	// Of a run.
	Seq    uint32 // its number on the communicator
	Pass   uint32 // of the run; of a Probe not 0 if it answers one
	Edge   int32  // of the program, between the two ranks
	Digest uint32 // of (request, plan, topology), compared on arrival; Tagged, Offer: the type of elements

	Refund int32 // eager bytes given back to the receiver of this; 0 <= Refund

	// Urgency is not sent: it orders large payloads, see [Queue].
	Urgency int32

	Tag int32 // Tagged, Offer: of the transfer; 0 <= Tag

	Size   int64          // bytes of the payload meant; 0 <= Size
	Addr   unsafe.Pointer // Credit, Accept, Notify: in the sender's memory; nil: there is none
	Offset int64          // bytes of a large payload before this part; 0 <= Offset <= Size
	Remote uint64         // Notify: Addr as an address of the sender's process; 0: this process can use Addr
	Age    uint64         // Notify: of the sender's memory when it said so; a reader compares it

	// Of a transfer.
	SendTicket uint32 // Tagged, Offer: number of the send; Accept: of the send it answers
	RecvTicket uint32 // Accept: number of the receive; Arrived: of the receive it completes
}

// Numbers returns the address of a message, as links carry it: no message has both
// a run and a transfer.
func (m *Message) Numbers() (seq, turn uint32, edge int32) {
	return m.Seq | m.RecvTicket, m.Pass | m.SendTicket, m.Edge | m.Tag
}

// SetNumbers sets the numbers from Numbers, for a message of m's kind.
func (m *Message) SetNumbers(seq, turn uint32, edge int32) {
	if m.Kind.IsPointToPoint() {
		m.RecvTicket, m.SendTicket, m.Tag = seq, turn, edge
	} else {
		m.Seq, m.Pass, m.Edge = seq, turn, edge
	}
}

// Extent returns the quantity of a message, as links carry it: the
// age of a Notify, what a Bye says of its rank, the size of any other.
func (m *Message) Extent() int64 {
	n := m.Size
	switch m.Kind {
	case Notify:
		return int64(m.Age)
	case Bye:
		if m.Broken {
			n |= 1
		}
		if m.Onward {
			n |= 2
		}
	}
	return n
}

// SetExtent sets the number from Extent, for a message of m's kind.
func (m *Message) SetExtent(n int64) {
	switch m.Kind {
	case Notify:
		m.Age = uint64(n)
	case Bye:
		m.Broken, m.Onward, m.Size = n&1 != 0, n&2 != 0, n&^3 // a size is refused by Check
	default:
		m.Size = n
	}
}

// Check returns an error that wraps [ErrProtocol] if no rank sends such a message, or
// if n bytes of payload don't fit it. small bounds, in bytes, the payloads of all but parts of
// large ones.
func (m *Message) Check(n, small int64) error {
	payload := m.Kind == Eager || m.Kind == Tagged
	switch {
	case m.Kind == 0 || m.Kind >= MaxKind:
		return fmt.Errorf("%w: message of unknown kind %d", ErrProtocol, uint8(m.Kind))
	case m.Size < 0 || m.Offset < 0 || m.Refund < 0:
		return fmt.Errorf("%w: %v message with negative numbers", ErrProtocol, m.Kind)
	case m.Kind.IsLarge() && (m.Offset > m.Size || n > m.Size-m.Offset):
		return fmt.Errorf("%w: %v message with %d bytes at %d of %d", ErrProtocol, m.Kind, n, m.Offset, m.Size)
	case m.Kind.IsLarge():
		return nil
	case m.Kind == Bye && m.Size != 0:
		return fmt.Errorf("%w: %v message of %d bytes", ErrProtocol, m.Kind, m.Size)
	case payload && (n != m.Size || n > small) || !payload && n != 0 || m.Offset != 0:
		return fmt.Errorf("%w: %v message of %d bytes with %d at %d; at most %d at once", ErrProtocol, m.Kind, m.Size, n, m.Offset, small)
	}
	return nil
}

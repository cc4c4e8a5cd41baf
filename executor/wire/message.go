package wire

import (
	"errors"
	"fmt"
	"unsafe"
)

// kind is what a message means. The zero value is invalid.
type Kind uint8

const (
	_       Kind = iota
	Eager        // payload of a send without credit
	Data         // a large payload is in its place
	Credit       // a recv is ready: addr is where its bytes go
	Want         // an eager send has no budget left and asks for credit
	Notify       // a notify; addr is what it exposes
	Return       // gives back eager budget, nothing else
	Probe        // "I am at this request": finds ranks that disagree
	Bye          // the rank has left the communicator after seq runs
	Tagged       // payload of a small point-to-point send
	Offer        // a large point-to-point send is ready
	Accept       // its recv: addr is where the bytes go
	Arrived      // its bytes are there
	MaxKind
)

var kindNames = [MaxKind]string{
	Eager: "eager", Data: "data", Credit: "credit", Want: "want",
	Notify: "notify", Return: "return", Probe: "probe",
	Bye: "bye", Tagged: "tagged", Offer: "offer", Accept: "accept", Arrived: "arrived",
}

// String is the kind's name.
func (k Kind) String() string {
	if k == 0 || k >= MaxKind {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// message is what engines tell each other. Runs are named by (comm, seq, pass),
// steps by the edge between the two ranks.
type Message struct {
	Kind   Kind
	Comm   CommID
	Seq    uint32
	Pass   uint32
	Edge   int32          // of the program; the tag of point-to-point
	Digest uint32         // of (request, plan, topology), compared on arrival
	Refund int32          // eager bytes given back to the one who hears this
	Size   int64          // bytes of the payload meant
	Addr   unsafe.Pointer // in the memory of the one who says this
	Offset int64          // of a part of a large payload, in transports that cut it
	Remote uint64         // addr as an address of the sender's process, if it is out of reach here
	Age    uint64         // of the sender's memory, see exposure
	Ticket uint32         // point-to-point: which of the transfers of the one who hears this; in tagged and offer: of the one who says it
}

// large reports whether payloads of this kind move in parts, straight to their
// place.
func (k Kind) IsLarge() bool { return k == Data || k == Arrived }

// check refuses what no rank says: n bytes of payload that don't fit the message.
// small bounds those of messages that are not parts of large ones.
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
	case payload && (n != m.Size || n > small) || !payload && n != 0 || m.Offset != 0:
		return fmt.Errorf("%w: %v message of %d bytes with %d at %d; at most %d at once", ErrProtocol, m.Kind, m.Size, n, m.Offset, small)
	}
	return nil
}

// errProtocol: a peer sent something that can't be.
var ErrProtocol = errors.New("protocol error")

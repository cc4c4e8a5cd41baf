package wire

import (
	"encoding/binary"
	"fmt"
)

// A link over a stream of bytes carries frames: a header of FrameHeader bytes and up to
// MaxFrame bytes of payload. All numbers are big-endian. Addresses don't travel.
//
//	0  kind         1 byte, 3 zero
//	4  payload      bytes that follow the header
//	8  comm         8 bytes
//	16 seq, turn, edge   4 bytes each, see [Message.Numbers]
//	28 digest, refund    4 bytes each, 4 zero
//	40 extent       of the whole message, 8 bytes, see [Message.Extent]
//	48 offset       of this payload in it, 8 bytes
const (
	FrameHeader = 56        // bytes
	MaxFrame    = 256 << 10 // bytes
)

// AppendFrame appends a header for n bytes of payload.
func AppendFrame(b []byte, m *Message, n int) []byte {
	var h [FrameHeader]byte
	h[0] = byte(m.Kind)
	be := binary.BigEndian
	be.PutUint32(h[4:], uint32(n))
	be.PutUint64(h[8:], uint64(m.Comm))
	seq, turn, edge := m.Numbers()
	be.PutUint32(h[16:], seq)
	be.PutUint32(h[20:], turn)
	be.PutUint32(h[24:], uint32(edge))
	be.PutUint32(h[28:], m.Digest)
	be.PutUint32(h[32:], uint32(m.Refund))
	be.PutUint64(h[40:], uint64(m.Extent()))
	be.PutUint64(h[48:], uint64(m.Offset))
	return append(b, h[:]...)
}

// ParseFrame reads a header; n bytes of payload follow it. small is for [Message.Check]. A
// header foreign to all links is an error that wraps [ErrProtocol].
func ParseFrame(h []byte, small int64) (m Message, n int, err error) {
	if len(h) < FrameHeader {
		return m, 0, fmt.Errorf("%w: a frame header of %d bytes; it has %d", ErrProtocol, len(h), FrameHeader)
	}
	be := binary.BigEndian
	m = Message{
		Kind: Kind(h[0]), Comm: CommID(be.Uint64(h[8:])), Digest: be.Uint32(h[28:]), Refund: int32(be.Uint32(h[32:])),
		Offset: int64(be.Uint64(h[48:])),
	}
	m.SetNumbers(be.Uint32(h[16:]), be.Uint32(h[20:]), int32(be.Uint32(h[24:])))
	m.SetExtent(int64(be.Uint64(h[40:])))
	length := int64(be.Uint32(h[4:]))
	switch {
	case h[1]|h[2]|h[3]|h[36]|h[37]|h[38]|h[39] != 0:
		err = fmt.Errorf("%w: frame of unknown kind %#x", ErrProtocol, h[:4])
	case length > MaxFrame:
		err = fmt.Errorf("%w: frame of %d bytes; at most %d", ErrProtocol, length, MaxFrame)
	default:
		err = m.Check(length, small)
	}
	return m, int(length), err
}

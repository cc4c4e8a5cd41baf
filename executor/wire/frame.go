package wire

import (
	"encoding/binary"
	"fmt"
)

// A TCP link carries frames: a header of fixed size and up to maxFrame bytes of
// payload. All numbers are big-endian.
//
//	0  kind         1 byte, 3 zero
//	4  payload      bytes that follow the header
//	8  comm         8 bytes
//	16 seq, pass, edge, digest, refund, ticket   4 bytes each
//	40 size         of the whole message, 8 bytes
//	48 offset       of this payload in it, 8 bytes
const (
	FrameHeader = 56
	MaxFrame    = 256 << 10
)

// putFrame appends a header for n bytes of payload.
func AppendFrame(b []byte, m *Message, n int) []byte {
	var h [FrameHeader]byte
	h[0] = byte(m.Kind)
	be := binary.BigEndian
	be.PutUint32(h[4:], uint32(n))
	be.PutUint64(h[8:], uint64(m.Comm))
	be.PutUint32(h[16:], m.Seq)
	be.PutUint32(h[20:], m.Pass)
	be.PutUint32(h[24:], uint32(m.Edge))
	be.PutUint32(h[28:], m.Digest)
	be.PutUint32(h[32:], uint32(m.Refund))
	be.PutUint32(h[36:], m.Ticket)
	be.PutUint64(h[40:], uint64(m.Size))
	be.PutUint64(h[48:], uint64(m.Offset))
	return append(b, h[:]...)
}

// parseFrame reads a header. small is for [message.check].
func ParseFrame(h []byte, small int64) (m Message, n int, err error) {
	if len(h) < FrameHeader {
		return m, 0, fmt.Errorf("%w: a frame header of %d bytes; it has %d", ErrProtocol, len(h), FrameHeader)
	}
	be := binary.BigEndian
	m = Message{
		Kind: Kind(h[0]), Comm: CommID(be.Uint64(h[8:])), Seq: be.Uint32(h[16:]), Pass: be.Uint32(h[20:]),
		Edge: int32(be.Uint32(h[24:])), Digest: be.Uint32(h[28:]), Refund: int32(be.Uint32(h[32:])),
		Ticket: be.Uint32(h[36:]), Size: int64(be.Uint64(h[40:])), Offset: int64(be.Uint64(h[48:])),
	}
	length := int64(be.Uint32(h[4:]))
	switch {
	case h[1]|h[2]|h[3] != 0:
		err = fmt.Errorf("%w: frame of unknown kind %#x", ErrProtocol, h[:4])
	case length > MaxFrame:
		err = fmt.Errorf("%w: frame of %d bytes; at most %d", ErrProtocol, length, MaxFrame)
	default:
		err = m.Check(length, small)
	}
	return m, int(length), err
}

package executor

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
	frameHeader = 56
	maxFrame    = 256 << 10
)

// putFrame appends a header for n bytes of payload.
func putFrame(b []byte, m *message, n int) []byte {
	var h [frameHeader]byte
	h[0] = byte(m.kind)
	be := binary.BigEndian
	be.PutUint32(h[4:], uint32(n))
	be.PutUint64(h[8:], uint64(m.comm))
	be.PutUint32(h[16:], m.seq)
	be.PutUint32(h[20:], m.pass)
	be.PutUint32(h[24:], uint32(m.edge))
	be.PutUint32(h[28:], m.digest)
	be.PutUint32(h[32:], uint32(m.refund))
	be.PutUint32(h[36:], m.ticket)
	be.PutUint64(h[40:], uint64(m.size))
	be.PutUint64(h[48:], uint64(m.offset))
	return append(b, h[:]...)
}

// parseFrame reads a header. small is for [message.check].
func parseFrame(h []byte, small int64) (m message, n int, err error) {
	if len(h) < frameHeader {
		return m, 0, fmt.Errorf("%w: a frame header of %d bytes; it has %d", ErrProtocol, len(h), frameHeader)
	}
	be := binary.BigEndian
	m = message{
		kind: kind(h[0]), comm: CommID(be.Uint64(h[8:])), seq: be.Uint32(h[16:]), pass: be.Uint32(h[20:]),
		edge: int32(be.Uint32(h[24:])), digest: be.Uint32(h[28:]), refund: int32(be.Uint32(h[32:])),
		ticket: be.Uint32(h[36:]), size: int64(be.Uint64(h[40:])), offset: int64(be.Uint64(h[48:])),
	}
	length := int64(be.Uint32(h[4:]))
	switch {
	case h[1]|h[2]|h[3] != 0:
		err = fmt.Errorf("%w: frame of unknown kind %#x", ErrProtocol, h[:4])
	case length > maxFrame:
		err = fmt.Errorf("%w: frame of %d bytes; at most %d", ErrProtocol, length, maxFrame)
	default:
		err = m.check(length, small)
	}
	return m, int(length), err
}

// large reports whether payloads of this kind move in parts, straight to their
// place.
func (k kind) large() bool { return k == dataKind || k == arrivedKind }

// check refuses what no rank says: n bytes of payload that don't fit the message.
// small bounds those of messages that are not parts of large ones.
func (m *message) check(n, small int64) error {
	payload := m.kind == eagerKind || m.kind == taggedKind
	switch {
	case m.kind == 0 || m.kind >= maxKind:
		return fmt.Errorf("%w: message of unknown kind %d", ErrProtocol, uint8(m.kind))
	case m.size < 0 || m.offset < 0 || m.refund < 0:
		return fmt.Errorf("%w: %v message with negative numbers", ErrProtocol, m.kind)
	case m.kind.large() && (m.offset > m.size || n > m.size-m.offset):
		return fmt.Errorf("%w: %v message with %d bytes at %d of %d", ErrProtocol, m.kind, n, m.offset, m.size)
	case m.kind.large():
		return nil
	case payload && (n != m.size || n > small) || !payload && n != 0 || m.offset != 0:
		return fmt.Errorf("%w: %v message of %d bytes with %d at %d; at most %d at once", ErrProtocol, m.kind, m.size, n, m.offset, small)
	}
	return nil
}

// parts is how far a large payload has come that a link cuts. Its parts come one
// after the other, none of them shorter than it could be; one that a failed
// communicator let go of is followed by the beginning of another.
type parts struct {
	of   message // without what differs between them
	next int64   // where the next one begins; 0: there is none
}

// follow takes a part of n bytes in, of most bytes at most, or refuses it.
func (p *parts) follow(m *message, n, most int64) error {
	of := *m
	of.offset, of.refund = 0, 0
	if n != min(most, m.size-m.offset) || m.offset > 0 && (m.offset != p.next || of != p.of) {
		return fmt.Errorf("%w: %v message with %d bytes at %d of %d where %d follow", ErrProtocol, m.kind, n, m.offset, m.size, p.next)
	}
	p.of, p.next = of, m.offset+n
	if p.next == m.size {
		p.next = 0
	}
	return nil
}

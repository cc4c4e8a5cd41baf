package launcher

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// PMIx packs values by its bfrops module "v3", as PMIx has it from 3.0 on: fixed
// sizes, big endian. "Not described" buffers have no type in front of a value. Every
// pack is a count and as many values.

// Types that values of type size, and values of unknown type, name.
const (
	pmixBool   = 1
	pmixString = 3
	pmixUint64 = 15
)

// Limits on messages of a server.
const (
	pmixMessage = 1 << 20  // bytes of a message
	pmixText    = 64 << 10 // bytes of a string
)

// pack is a message under construction.
type pack struct{ b []byte }

func (p *pack) u8(v uint8)   { p.b = append(p.b, v) }
func (p *pack) u16(v uint16) { p.b = binary.BigEndian.AppendUint16(p.b, v) }
func (p *pack) u32(v uint32) { p.b = binary.BigEndian.AppendUint32(p.b, v) }

// count begins a pack of n values.
func (p *pack) count(n int) { p.u32(uint32(n)) }

// text packs a string, ended by a zero byte that its length counts.
func (p *pack) text(s string) {
	p.u32(uint32(len(s) + 1))
	p.b = append(append(p.b, s...), 0)
}

// size packs a size_t, described as its type on this machine.
func (p *pack) size(n int) {
	p.u16(pmixUint64)
	p.b = binary.BigEndian.AppendUint64(p.b, uint64(n))
}

var (
	errShort = errors.New("the message is cut short")
	errLong  = errors.New("a length in the message is beyond all bounds")
)

// unpack reads a message. After an error it returns zeros.
type unpack struct {
	b   []byte
	err error
}

// take returns the next n bytes, or nil.
func (u *unpack) take(n int) []byte {
	if u.err == nil && (n < 0 || n > len(u.b)) {
		u.err = errShort
	}
	if u.err != nil {
		return nil
	}
	taken := u.b[:n]
	u.b = u.b[n:]
	return taken
}

func (u *unpack) u16() uint16 {
	if b := u.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (u *unpack) u32() uint32 {
	if b := u.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (u *unpack) u64() uint64 {
	if b := u.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// one reads the count of a pack with one value.
func (u *unpack) one() {
	if n := u.u32(); u.err == nil && n != 1 {
		u.err = fmt.Errorf("%d values where one belongs", n)
	}
}

func (u *unpack) text() string {
	n := u.u32()
	if n > pmixText && u.err == nil {
		u.err = errLong
	}
	return strings.TrimSuffix(string(u.take(int(n))), "\x00")
}

func (u *unpack) size() int {
	if t := u.u16(); u.err == nil && t != pmixUint64 {
		u.err = fmt.Errorf("a size of type %d; allowed is %d", t, pmixUint64)
	}
	n := u.u64()
	if n > pmixMessage && u.err == nil {
		u.err = errLong
	}
	return int(n)
}

// status reads how a request ended; 0 is well.
func (u *unpack) status() int32 {
	u.one()
	return int32(u.u32())
}

package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// MaxPlain is the most plaintext of a record, bytes.
	MaxPlain = 16 << 10
	// Overhead is by how much a record is longer than its plaintext, bytes.
	Overhead = headerLen + tagLen

	tagLen    = 16
	keyLen    = 16
	nonceLen  = 12
	secretLen = sha256.Size

	data = 23 // kinds of records, as in TLS
	end  = 21

	// renewAfter bounds the records of one key: half of the limit in RFC 8446, 5.5.
	renewAfter = 1 << 23
)

// ErrDamaged: a record was not sealed by the other side, or is not the next one.
var ErrDamaged error = damage{}

// damage is no sign of a death: nobody needs to wait for a better explanation.
type damage struct{}

func (damage) Error() string {
	return "a sealed record was changed, left out, repeated or is another connection's"
}

// IsNoDeath returns true: both sides may live.
func (damage) IsNoDeath() bool { return true }

// Session seals and opens the records of one side of a connection. It does no I/O,
// and after the first use it allocates nothing until a key is renewed. Its methods must not
// be called concurrently.
type Session struct {
	out, in direction
	failed  error // of Open, for good
}

// direction is one way of a Session.
type direction struct {
	secret []byte
	aead   cipher.AEAD
	iv     [nonceLen]byte
	nonce  [nonceLen]byte // a field, so it is allocated once
	seq    uint64         // of the next record with this key
	limit  uint64         // records of a key
	header cipher.Block   // makes the checks of headers
	block  [aes.BlockSize]byte
}

func newSession(secrets []byte, dialled bool) (*Session, error) {
	mine, theirs := secrets[:secretLen], secrets[secretLen:]
	if !dialled {
		mine, theirs = theirs, mine
	}
	s := &Session{out: direction{secret: mine, limit: renewAfter}, in: direction{secret: theirs, limit: renewAfter}}
	return s, errors.Join(s.out.useKey(), s.in.useKey())
}

// useKey derives key and nonces of the secret.
func (d *direction) useKey() error {
	b, err := hkdf.Expand(sha256.New, d.secret, "tierflow link key", keyLen+nonceLen+keyLen)
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(b[:keyLen])
	if err != nil {
		return err
	}
	d.seq = 0
	copy(d.iv[:], b[keyLen:])
	if d.aead, err = cipher.NewGCM(block); err != nil {
		return err
	}
	d.header, err = aes.NewCipher(b[keyLen+nonceLen:])
	return err
}

// renew renews the key if it is worn.
func (d *direction) renew() {
	if d.seq < d.limit {
		return
	}
	secret, err := hkdf.Expand(sha256.New, d.secret, "tierflow link renewal", secretLen)
	if err == nil {
		d.secret = secret
		err = d.useKey()
	}
	if err != nil {
		panic(fmt.Sprintf("seal: a key like the last can't be made: %v", err))
	}
}

// check returns the two bytes in place of TLS's version in the header of the next record. Without them a changed
// length would be found only after so many bytes, and both sides might wait for these.
func (d *direction) check(kind, high, low byte) (a, b byte) {
	d.renew()
	d.block = [aes.BlockSize]byte{kind, high, low}
	binary.BigEndian.PutUint64(d.block[8:], d.seq)
	d.header.Encrypt(d.block[:], d.block[:])
	return d.block[0], d.block[1]
}

// next returns the nonce of the next record.
func (d *direction) next() []byte {
	d.renew()
	d.nonce = d.iv
	low := d.nonce[nonceLen-8:]
	binary.BigEndian.PutUint64(low, binary.BigEndian.Uint64(low)^d.seq)
	d.seq++
	return d.nonce[:]
}

// Seal appends a record with plain, at most [MaxPlain] bytes, to dst.
func (s *Session) Seal(dst, plain []byte) []byte { return s.out.seal(dst, data, plain) }

// End appends the last record: nothing comes after it.
func (s *Session) End(dst []byte) []byte { return s.out.seal(dst, end, nil) }

func (d *direction) seal(dst []byte, kind byte, plain []byte) []byte {
	if len(plain) > MaxPlain {
		panic(fmt.Sprintf("seal: a record of %d bytes; allowed are %d", len(plain), MaxPlain))
	}
	n := len(plain) + tagLen
	one, two := d.check(kind, byte(n>>8), byte(n))
	dst = append(dst, kind, one, two, byte(n>>8), byte(n))
	return d.aead.Seal(dst, d.next(), plain, dst[len(dst)-headerLen:])
}

// RecordLen returns the length of the next record to open, at the beginning of b, 0 if b is too
// short to tell. After a failed Open it fails too.
func (s *Session) RecordLen(b []byte) (int, error) {
	if s.failed != nil && !s.HasEnded() {
		return 0, s.failed
	}
	if len(b) < headerLen {
		return 0, nil
	}
	n := int(binary.BigEndian.Uint16(b[3:]))
	one, two := s.in.check(b[0], b[3], b[4])
	if b[0] != data && b[0] != end || b[1] != one || b[2] != two || n < tagLen || n > MaxPlain+tagLen {
		return 0, fmt.Errorf("%w: its header is %x", ErrDamaged, b[:headerLen])
	}
	return headerLen + n, nil
}

// Open opens a whole record, with the length from RecordLen. dst has room for its
// plaintext, [Overhead] bytes less, and does not overlap it. The other side's end
// is io.EOF. After an error Open fails for good, and dst holds nothing of the record.
func (s *Session) Open(dst, record []byte) (n int, err error) {
	if s.failed != nil {
		return 0, s.failed
	}
	plain, err := s.in.aead.Open(dst[:0:len(record)-Overhead], s.in.next(), record[headerLen:], record[:headerLen])
	switch {
	case err != nil:
		s.failed = ErrDamaged
	case record[0] == end && len(plain) > 0:
		s.failed = fmt.Errorf("%w: an end with %d bytes", ErrDamaged, len(plain))
	case record[0] == end:
		s.failed = io.EOF
	}
	return len(plain), s.failed
}

// HasEnded reports whether the other side has said its end.
func (s *Session) HasEnded() bool { return errors.Is(s.failed, io.EOF) }

//go:build linux

package tcp

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels/join/seal"
)

// recordsAtOnce is how many records are sealed before they are written, and opened after one
// read: sealed records leave in order, so control frames wait for no more than these.
const recordsAtOnce = 4

// sealedAtOnce has room for them.
const sealedAtOnce = recordsAtOnce * (seal.MaxPlain + seal.Overhead)

// sealed is the writing side of a link with records. A frame's body begins a record, and no
// record has parts of two bodies: so the other side can open bodies in place.
type sealed struct {
	session *seal.Session
	buf     []byte // memory of left
	left    []byte // records not taken by the socket yet
	plain   int    // bytes of the train in left, not counted yet
	eor     bool   // behind left begins a packet
}

// unsealed is the reading side of a connection with records.
type unsealed struct {
	session  *seal.Session
	raw      []byte // [from:to] has come, and is not opened yet
	from, to int
}

// writeSealed writes as much of the sealed records as the socket has room for, else of the
// next ones. It counts frames as written when the socket has taken a part of their records: the
// bodies are needed no more.
func (l *Link) writeSealed(s wire.Sink) (int, error) {
	k := l.seal
	if len(k.left) == 0 {
		k.sealNext(&l.out)
	}
	flags := uintptr(unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL)
	if k.eor {
		flags |= unix.MSG_EOR
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(l.send), uintptr(unsafe.Pointer(&k.left[0])), uintptr(len(k.left)), flags, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	k.left = k.left[n:]
	plain := k.plain
	k.plain = 0
	l.advance(plain, s) // last: whoever hears of it may write to the link
	return int(n), nil
}

// sealNext seals the next part of a train. The train is not empty.
func (k *sealed) sealNext(t *train) {
	if k.buf == nil {
		k.buf = make([]byte, 0, sealedAtOnce)
	}
	records, bodies, whole := k.buf[:0], false, true
	for i := t.first; i < t.last; i++ {
		for j, p := range [2][]byte{t.frames[i].head, t.frames[i].body} {
			for len(p) > 0 && len(records)+seal.MaxPlain+seal.Overhead <= sealedAtOnce {
				plain := p[:min(len(p), seal.MaxPlain)]
				wire.AnnounceRead(plain)
				records = k.session.Seal(records, plain)
				k.plain += len(plain)
				p, bodies = p[len(plain):], j == 1
			}
			whole = whole && len(p) == 0
		}
		if !whole {
			break
		}
	}
	k.left = records
	k.eor = whole && (bodies || t.apart && len(records) >= leastPacket)
}

// holdsBack reports whether a connection can't be shut yet: records wait for room.
func (l *Link) holdsBack(r *reader) bool {
	return r.fd == l.send && l.dead == nil && l.seal != nil && len(l.seal.left) > 0
}

// sayEnd tells the other side of a sealed connection of the end. If the socket has no room for it
// the peer doesn't read: it will miss the end.
func (r *reader) sayEnd() {
	if r.seal == nil {
		return
	}
	b := r.seal.session.End(make([]byte, 0, seal.Overhead))
	_ = unix.Sendto(r.fd, b, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
}

// unseal makes the reader one of a sealed connection.
func (r *reader) unseal(session *seal.Session) {
	r.buf = make([]byte, readAhead+seal.MaxPlain)
	r.seal = &unsealed{session: session, raw: make([]byte, sealedAtOnce)}
}

// readSealed is read of a sealed connection.
func (l *Link) readSealed(r *reader, s wire.Sink) (some bool, err error) {
	u := r.seal
	for range readsPerPoll {
		if u.from > 0 {
			u.to = copy(u.raw, u.raw[u.from:u.to]) // the beginning of a record
			u.from = 0
		}
		room := u.raw[u.to:]
		n, err := r.receive(nil, room)
		if n == 0 {
			return some, err
		}
		some = true
		u.to += n
		if err := l.openAll(r, s); err != nil {
			return some, err
		}
		if n < len(room) {
			return some, nil
		}
	}
	return some, nil
}

// openAll opens all whole records.
func (l *Link) openAll(r *reader, s wire.Sink) error {
	u := r.seal
	for {
		n, err := u.session.RecordLen(u.raw[u.from:u.to])
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if n == 0 || n > u.to-u.from {
			return nil
		}
		record := u.raw[u.from : u.from+n]
		u.from += n
		if err := l.open(r, record, s); err != nil {
			return err
		}
	}
}

// open opens a record to the place of its plaintext, if it is known, else behind the bytes
// read ahead.
func (l *Link) open(r *reader, record []byte, s wire.Sink) error {
	n := len(record) - seal.Overhead
	straight := r.dst != nil && n > 0 && n <= r.rest
	dst := r.buf[r.to:]
	if straight {
		dst = r.dst
	} else if r.from > 0 {
		r.to = copy(r.buf, r.buf[r.from:r.to])
		r.from, dst = 0, r.buf[r.to:]
	}
	wire.AnnounceWrite(dst[:n])
	_, err := r.seal.session.Open(dst, record)
	switch {
	case r.seal.session.HasEnded():
		return nil // the end of the stream comes next
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case straight:
		r.took(n)
		l.noteArrival(r, s)
		return nil
	}
	r.to += n
	return l.parse(r, s)
}

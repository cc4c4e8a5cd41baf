package seal

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// tube is the connection below crypto/tls. It reads no byte behind the wanted
// record, and once it is told to keep written bytes it never fails to write: crypto/tls would
// give the connection up.
type tube struct {
	net.Conn
	first []byte // read before the handshake; comes before the bytes of the socket

	head [headerLen]byte // of the record being read
	have int             // bytes of head here already; 0 <= have < headerLen
	rest int             // bytes of the record behind its head, still to come; 0 <= rest

	ended atomic.Bool // the socket's stream has ended
	apart bool        // the socket is somebody else's: there is nothing to read

	mu   sync.Mutex
	keep bool   // writes go to out
	mute bool   // writes go nowhere
	out  []byte // unsent records
}

// headerLen is the length of a record's header: its kind, version and length.
const headerLen = 5

// Read reads up to the rest of the header or of the record.
func (t *tube) Read(p []byte) (n int, err error) {
	if t.apart {
		return 0, errNothing{}
	}
	if t.rest > 0 {
		n, err = t.take(p[:min(len(p), t.rest)])
		t.rest -= n
		return n, err
	}
	n, err = t.take(p[:min(len(p), headerLen-t.have)])
	copy(t.head[t.have:], p[:n])
	if t.have += n; t.have == headerLen {
		t.have, t.rest = 0, int(binary.BigEndian.Uint16(t.head[3:]))
	}
	return n, err
}

func (t *tube) take(p []byte) (n int, err error) {
	if len(t.first) > 0 {
		n = copy(p, t.first)
		t.first = t.first[n:]
		return n, nil
	}
	n, err = t.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		t.ended.Store(true)
	}
	return n, err
}

// Write writes to the socket during the handshake; later it keeps b for flush.
func (t *tube) Write(b []byte) (int, error) {
	t.mu.Lock()
	keep := t.keep
	if keep {
		t.out = append(t.out, b...)
	}
	t.mu.Unlock()
	if keep || t.mute {
		return len(b), nil
	}
	return t.Conn.Write(b)
}

// flush writes the kept bytes. Those refused by the socket stay for the next flush. One
// goroutine at a time calls it.
func (t *tube) flush() error {
	t.mu.Lock()
	out := t.out
	t.out = nil
	t.mu.Unlock()
	if len(out) == 0 {
		return nil
	}
	n, err := t.Conn.Write(out)
	if n < len(out) {
		t.mu.Lock()
		t.out = append(out[n:], t.out...)
		t.mu.Unlock()
	}
	return err
}

func (t *tube) isEmpty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.out) == 0 && len(t.first) == 0 && t.have == 0 && t.rest == 0
}

// SetDeadline does nothing, as its sisters: deadlines are the Conn's, and crypto/tls sets
// some of its own.
func (t *tube) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (t *tube) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (t *tube) SetWriteDeadline(time.Time) error { return nil }

// errNothing is a read of a tube without a socket. It is temporary, so crypto/tls
// doesn't keep it.
type errNothing struct{}

func (errNothing) Error() string   { return "nothing to read" }
func (errNothing) Timeout() bool   { return true }
func (errNothing) Temporary() bool { return true }

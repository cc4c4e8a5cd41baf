package seal

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// ErrTruncated: the connection ended without the last word of TLS, so somebody on the
// way may have cut it, or the other side was killed.
var ErrTruncated = errors.New("the connection ended without TLS's close_notify")

// Labels of keys exported from a handshake.
const (
	bindingLabel = "EXPORTER-tierflow-join"
	linkLabel    = "EXPORTER-tierflow-link"
)

// Conn is a TLS 1.3 connection. One goroutine may read while another one writes; all other
// methods may be called at any time.
type Conn struct {
	net.Conn // the socket: it has the addresses and deadlines

	tls     *tls.Conn
	tube    *tube
	dialled bool
	binding []byte
	secrets []byte // of the link: the dialer's half first

	writing sync.Mutex // held by whoever writes
}

var _ net.Conn = (*Conn)(nil)

// Client makes the handshake of the dialer, under the deadlines of c. c belongs to
// the Conn; after an error it is still the caller's.
func Client(c net.Conn, cfg *tls.Config) (*Conn, error) {
	t := &tube{Conn: c}
	return newConn(t, tls.Client(t, cfg), true)
}

// Server makes the handshake of the listener. first are bytes already read from
// c.
func Server(c net.Conn, cfg *tls.Config, first []byte) (*Conn, error) {
	t := &tube{Conn: c, first: first}
	return newConn(t, tls.Server(t, cfg), false)
}

func newConn(t *tube, c *tls.Conn, dialled bool) (*Conn, error) {
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	state := c.ConnectionState()
	if state.Version != tls.VersionTLS13 {
		return nil, fmt.Errorf("%s was agreed on; allowed is TLS 1.3", tls.VersionName(state.Version))
	}
	sealed := &Conn{Conn: t.Conn, tls: c, tube: t, dialled: dialled}
	var err error
	if sealed.binding, err = state.ExportKeyingMaterial(bindingLabel, nil, 32); err != nil {
		return nil, err
	}
	if sealed.secrets, err = state.ExportKeyingMaterial(linkLabel, nil, 2*secretLen); err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.keep = true
	t.mu.Unlock()
	return sealed, nil
}

// Protocols returns the application protocols asked for by the dialer of c, nil if it
// does not speak TLS. It answers nothing. first are bytes already read from c.
func Protocols(c net.Conn, first []byte) (asked []string) {
	enough := errors.New("enough")
	t := &tube{Conn: c, first: first, mute: true}
	_ = tls.Server(t, &tls.Config{ // it fails by design
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			asked = hello.SupportedProtos
			return nil, enough
		},
	}).Handshake()
	return asked
}

// Binding returns 32 bytes known to the two ends of this handshake alone: a man in the middle of
// two connections has others on each side.
func (c *Conn) Binding() []byte { return c.binding }

// State returns the result of the handshake.
func (c *Conn) State() tls.ConnectionState { return c.tls.ConnectionState() }

// NetConn returns the connection below. Options may be set on it, and nothing else.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Read reads plaintext. After its deadline a read can be repeated. The end is io.EOF if the
// other side has said it, else [ErrTruncated].
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.tls.Read(p)
	if errors.Is(err, io.EOF) && c.tube.ended.Load() {
		err = ErrTruncated
	}
	return n, err
}

// Write seals p and writes it. Bytes sealed but not written at the deadline leave with the next
// Write or with the end, before anything else: so they count as written, and a Write
// takes nothing while such bytes are in the way.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.tube.flush(); err != nil {
		return 0, err
	}
	n, err := c.tls.Write(p)
	if err != nil {
		return n, err
	}
	return n, c.tube.flush()
}

// CloseWrite tells the other side of the end, and ends this side of the socket.
func (c *Conn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	err := errors.Join(c.tls.CloseWrite(), c.tube.flush())
	if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		err = errors.Join(err, h.CloseWrite())
	}
	return err
}

// farewell is how long Close tries to say the end.
const farewell = time.Millisecond

// Close closes the socket. It says the end before if that needs no wait.
func (c *Conn) Close() error {
	if c.writing.TryLock() {
		c.Conn.SetWriteDeadline(time.Now().Add(farewell))
		_ = c.tls.CloseWrite() // whoever reads finds out otherwise
		_ = c.tube.flush()
		c.writing.Unlock()
	}
	return c.Conn.Close()
}

// Detach takes the connection apart: the socket is the caller's, the Session seals and opens
// its records. It fails if some bytes were read and not taken, or written and not
// sent. The Conn is of no use any more.
func (c *Conn) Detach() (*Session, net.Conn, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.tube.isEmpty() {
		return nil, nil, errors.New("a TLS connection has bytes on their way; it can't be detached")
	}
	c.tube.apart = true
	var b [1]byte
	if n, err := c.tls.Read(b[:]); n > 0 || !errors.Is(err, errNothing{}) {
		return nil, nil, errors.New("a TLS connection has bytes that nobody has read; it can't be detached")
	}
	s, err := newSession(c.secrets, c.dialled)
	return s, c.Conn, err
}

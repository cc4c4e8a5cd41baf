package join

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
)

// lastWords bounds two waits of a Close whose ctx has ended: to hear the goodbyes
// of others, and then to let its own out.
const lastWords = 50 * time.Millisecond

const (
	edgeQueue = 256 // frames waiting towards one neighbour

	// A host that went silent is given up within 10 s: probes start when a connection
	// has been idle for 3 s and come each second, and both they and data must be
	// acknowledged within 8 s. Only control connections have this limit, since they
	// are always read: it also ends a connection whose reader has shut its window,
	// which on a data link is no reason.
	probeAfter = 3 * time.Second
	probeEvery = time.Second
	silence    = 8 * time.Second

	readOut = 500 * time.Millisecond // for what a neighbour sent before writing to it failed

	// lateBytes bounds what a reader takes whose time is up: more than a socket holds.
	lateBytes = 16 << 20
)

// edge is the connection to a neighbour in the tree. A reader goroutine hands
// frames to the job, a writer goroutine sends queued ones; the job waits for both.
type edge struct {
	peer levels.Rank
	conn net.Conn
	out  *queue[[]byte] // encoded frames
	late int            // bytes read when the time was up; the reader's
	// stands is set once both ends know of it. Before, one beside the tree may end because its
	// other end has given it up.
	stands atomic.Bool

	mu       sync.Mutex
	cause    error         // the first failure
	goodbye  bool          // the peer said it
	departed chan struct{} // closed on goodbye or end: nothing to wait for any more
}

func newEdge(peer levels.Rank, c net.Conn) *edge {
	return &edge{peer: peer, conn: c, out: newQueue[[]byte](edgeQueue), departed: make(chan struct{})}
}

// watchSilence sets keepalive and the time that data may stay unacknowledged.
func watchSilence(c net.Conn) error {
	if s, ok := c.(*seal.Conn); ok {
		c = s.NetConn()
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		return nil // a unix socket ends with its process
	}
	err := t.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: probeAfter, Interval: probeEvery, Count: int((silence - probeAfter) / probeEvery),
	})
	return errors.Join(err, giveUpUnacked(t, silence))
}

// write sends frames until the queue is closed and empty, then half-closes.
func (e *edge) write() {
	for {
		batch := e.out.takeAll()
		if len(batch) == 0 {
			break
		}
		if err := e.send(batch); err != nil {
			// The neighbour may have left with goodbye, still to be read.
			e.note(err)
			e.conn.SetReadDeadline(time.Now().Add(readOut))
			e.out.close()
			return
		}
	}
	if h, ok := e.conn.(interface{ CloseWrite() error }); ok {
		h.CloseWrite()
	}
}

// send writes frames. If the time is up it tries once more: on a busy machine that
// may have been so before the writer had its turn.
func (e *edge) send(batch net.Buffers) error {
	_, err := batch.WriteTo(e.conn) // takes away what it has written
	if errors.Is(err, os.ErrDeadlineExceeded) {
		e.conn.SetWriteDeadline(time.Now().Add(lastWords))
		_, err = batch.WriteTo(e.conn)
	}
	return err
}

// Read reads from the connection. If the time is up it still takes what is here: a
// reader that was kept busy would miss the goodbye otherwise.
func (e *edge) Read(p []byte) (int, error) {
	n, err := e.conn.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) || e.late > lateBytes {
		return n, err
	}
	if s, ok := e.conn.(*seal.Conn); ok {
		s.SetReadDeadline(time.Now().Add(time.Millisecond)) // the socket has records, not plaintext
		n, err = s.Read(p)
	} else {
		n, err = readNow(e.conn, p, err)
	}
	e.late += n
	return n, err
}

// read hands frames to handle until the connection ends.
func (e *edge) read(size int, handle func(*edge, *frame) error) {
	r := bufio.NewReader(e)
	for {
		f, err := readFrame(r, size, MaxPayload)
		if err == nil {
			err = handle(e, &f)
		}
		if err != nil {
			e.note(err)
			break
		}
	}
	e.conn.Close()
	e.out.close()
	e.depart(false)
}

// note keeps the first reason.
func (e *edge) note(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause == nil {
		e.cause = err
	}
}

// depart notes that nothing more is to be waited for.
func (e *edge) depart(goodbye bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.goodbye = e.goodbye || goodbye
	select {
	case <-e.departed:
	default:
		close(e.departed)
	}
}

// ended reports whether nothing more is to be waited for.
func (e *edge) ended() bool {
	select {
	case <-e.departed:
		return true
	default:
		return false
	}
}

// silent reports whether the neighbour never said goodbye.
func (e *edge) silent() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.goodbye
}

// loss is why the neighbour counts as lost after its connection ended; nil if it
// said goodbye.
func (e *edge) loss() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.goodbye:
		return nil
	case errors.Is(e.cause, io.EOF) || errors.Is(e.cause, seal.ErrTruncated):
		return fmt.Errorf("%w: its control connection ended", ErrLost)
	default:
		return fmt.Errorf("%w: %w", ErrLost, e.cause)
	}
}

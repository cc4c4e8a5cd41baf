package join

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/tierflow/tierflow/levels"
)

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
)

// edge is the connection to a neighbour in the tree. A reader goroutine hands
// frames to the job, a writer goroutine sends queued ones; the job waits for both.
type edge struct {
	peer levels.Rank
	conn net.Conn
	out  *queue[[]byte] // encoded frames

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
		if _, err := (*net.Buffers)(&batch).WriteTo(e.conn); err != nil {
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

// read hands frames to handle until the connection ends.
func (e *edge) read(size int, handle func(*edge, *frame) error) {
	r := bufio.NewReader(e.conn)
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

// absentee adds an error unless the peer has departed.
func (e *edge) absentee(errs []error, cause error) []error {
	select {
	case <-e.departed:
		return errs
	default:
		return append(errs, &PeerError{e.peer, fmt.Errorf("has not said goodbye: %w", cause)})
	}
}

// loss is why the neighbour counts as lost after its connection ended; nil if it
// said goodbye.
func (e *edge) loss() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.goodbye:
		return nil
	case errors.Is(e.cause, io.EOF):
		return fmt.Errorf("%w: its control connection ended", ErrLost)
	default:
		return fmt.Errorf("%w: %w", ErrLost, e.cause)
	}
}

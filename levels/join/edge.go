package join

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
)

// farewellTime bounds two waits of a Close after its ctx has ended: to hear the goodbyes
// of others, and then to let its own out.
const farewellTime = 50 * time.Millisecond

const (
	edgeQueue = 256 // frames waiting towards one neighbour

	// A silent host is given up within 10 s: probes start when a connection
	// has been idle for 3 s and come each second, and both they and data must be
	// acknowledged within 8 s. Only control connections have this limit, since they
	// are always read: it also ends a connection after its reader has shut the window,
	// and on a data link this is no reason.
	probeAfter  = 3 * time.Second
	probeEvery  = time.Second
	silenceTime = 8 * time.Second

	drainTime = 500 * time.Millisecond // for a neighbour's last frames after writing to it failed

	// maxOvertimeBytes bounds the bytes taken by a reader after its deadline: more than a socket holds.
	maxOvertimeBytes = 16 << 20
)

// edge is the connection to a neighbour in the tree. A reader goroutine hands
// frames to the job, a writer goroutine sends queued ones; the job waits for both.
type edge struct {
	peer          levels.Rank
	dialled       bool           // by this rank
	out           *queue[[]byte] // encoded frames
	overtimeBytes int            // bytes read when the time was up; the reader's
	received      uint32         // frames received; the reader's
	bytes         int            // of their payload since the last ack; the reader's
	fresh         chan net.Conn  // has another connection, see [Job.mend]
	// stands is set once both ends know of it. Before, one beside the tree may end because its
	// other end has given it up.
	stands atomic.Bool

	mu       sync.Mutex
	conn     net.Conn
	times    int           // replacements of the connection
	mended   sync.Cond     // when it is, and when the edge ends
	over     bool          // the edge has ended
	sent     [][]byte      // frames taken by the writer, not known to have arrived
	first    uint32        // the number of the first of them
	next     int           // of sent: the first not taken by this connection; 0 <= next <= len(sent)
	foul     bool          // the neighbour broke the protocol
	cause    error         // the first failure of the connection
	orphaned bool          // the peer's process has ended, see [Job.watchProcess]
	goodbye  bool          // the peer said it
	departed chan struct{} // closed on goodbye or end: nothing to wait for any more
}

func newEdge(peer levels.Rank, c net.Conn) *edge {
	e := &edge{peer: peer, conn: c, out: newQueue[[]byte](edgeQueue), departed: make(chan struct{}), fresh: make(chan net.Conn, 1)}
	e.mended.L = &e.mu
	return e
}

// current returns the connection of now.
func (e *edge) current() net.Conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.conn
}

// tcpOf returns the TCP connection below c, if there is one.
func tcpOf(c net.Conn) (t *net.TCPConn, ok bool) {
	if s, sealed := c.(*seal.Conn); sealed {
		c = s.NetConn()
	}
	t, ok = c.(*net.TCPConn)
	return t, ok
}

// watchSilence sets keepalive and the longest time of unacknowledged data.
func watchSilence(c net.Conn) error {
	t, ok := tcpOf(c)
	if !ok {
		return nil // a unix socket ends with the processes that hold it
	}
	err := t.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: probeAfter, Interval: probeEvery, Count: int((silenceTime - probeAfter) / probeEvery),
	})
	return errors.Join(err, giveUpUnacked(t, silenceTime))
}

// write sends frames until the queue is closed and empty, then half-closes.
func (e *edge) write() {
	for batch := e.out.takeAll(); len(batch) > 0; batch = e.out.takeAll() {
		e.mu.Lock()
		e.sent = append(e.sent, batch...)
		e.mu.Unlock()
		if !e.sendKept() {
			return
		}
	}
	if h, ok := e.current().(interface{ CloseWrite() error }); ok {
		h.CloseWrite()
	}
}

// sendKept sends the frames not taken by the connection yet, and waits for another connection after an
// error. It reports false if none came.
func (e *edge) sendKept() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.over && e.next < len(e.sent) {
		c, times, batch := e.conn, e.times, net.Buffers(slices.Clone(e.sent[e.next:]))
		e.next = len(e.sent)
		e.mu.Unlock()
		err := send(c, batch)
		if err != nil {
			// The neighbour may have left with goodbye, still to be read.
			c.SetReadDeadline(time.Now().Add(drainTime))
		}
		e.mu.Lock()
		if err != nil && e.cause == nil && e.times == times {
			e.cause = err
		}
		if err != nil {
			// The reader of this edge mends it. It may wait to pass a frame on to another broken edge, and the reader
			// of that one for this edge.
			e.out.loosen(true)
			for e.times == times && !e.over {
				e.mended.Wait()
			}
			e.out.loosen(false)
		}
	}
	return !e.over
}

// send writes frames. If the time is up it tries once more: on a busy machine
// it may have been up before the writer had its turn.
func send(c net.Conn, batch net.Buffers) error {
	_, err := batch.WriteTo(c) // takes the written bytes away
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.SetWriteDeadline(time.Now().Add(farewellTime))
		_, err = batch.WriteTo(c)
	}
	return err
}

// Read reads from the connection. If the time is up it still takes the bytes here: a
// busy reader would miss the goodbye otherwise.
func (e *edge) Read(p []byte) (int, error) {
	c := e.current() // the reader itself replaces it
	n, err := c.Read(p)
	if !errors.Is(err, os.ErrDeadlineExceeded) || e.overtimeBytes > maxOvertimeBytes {
		return n, err
	}
	if s, ok := c.(*seal.Conn); ok {
		s.SetReadDeadline(time.Now().Add(time.Millisecond)) // the socket has records, not plaintext
		n, err = s.Read(p)
	} else {
		n, err = readNow(c, p, err)
	}
	e.overtimeBytes += n
	return n, err
}

// read hands frames to handle until the connection ends.
func (e *edge) read(size int, handle func(*edge, *frame) error) {
	r := bufio.NewReader(e)
	for {
		f, err := readFrame(r, size, MaxPayload)
		if err == nil {
			if err = handle(e, &f); err != nil {
				e.mu.Lock()
				e.foul = true
				e.mu.Unlock()
			}
		}
		if err != nil {
			e.note(err)
			return
		}
	}
}

// end ends the edge after its connection. The job's lock is held: no other connection comes.
func (e *edge) end() {
	e.mu.Lock()
	e.over = true
	e.mended.Broadcast()
	e.mu.Unlock()
	e.out.close()
	e.depart(false)
	select {
	case c := <-e.fresh:
		c.Close()
	default:
	}
}

// note keeps the first reason.
func (e *edge) note(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause == nil {
		e.cause = err
	}
}

// depart ends all waiting for the neighbour.
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

// isOver reports whether nothing more is to be waited for.
func (e *edge) isOver() bool {
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

// isCut reports whether a connection on this machine has lost its other end, as one sees who was about to write. On a
// network something between the two can do that, too.
func isCut(cause error) bool {
	at, is := errors.AsType[*net.OpError](cause)
	return is && at.Net == "unix" && (errors.Is(cause, syscall.EPIPE) || errors.Is(cause, syscall.ECONNRESET))
}

// loss is why the neighbour counts as lost after its connection ended; nil if it
// said goodbye.
func (e *edge) loss() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.goodbye:
		return nil
	case e.orphaned || errors.Is(e.cause, io.EOF) || errors.Is(e.cause, seal.ErrTruncated) || isCut(e.cause):
		return fmt.Errorf("%w: its process ended without Close", ErrLost)
	default:
		return fmt.Errorf("%w: %w", ErrLost, e.cause)
	}
}

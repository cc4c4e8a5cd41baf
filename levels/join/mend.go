package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// A connection of the tree may break while both ranks live: somebody on the way has reset it. Then the
// dialer of that connection dials again. Both tell how many frames they have got, and the missing ones
// are sent again: no frame is lost, comes twice or out of order. The dialer may not know yet: if the network
// was down the reset didn't reach it. So the other one tells it, by a connection of its own. An edge therefore keeps the
// frames until the other end acknowledges them, now and then.
//
// A host silent for too long is not dialled again: it counts as lost. So does a rank
// when its host refuses connections: its process has ended.

const (
	mendTime  = silenceTime            // for mending an edge
	mendPause = 20 * time.Millisecond  // between two attempts
	tellPause = 500 * time.Millisecond // before the other end is told to dial, and between two such words
	ackEvery  = 32                     // frames between two acknowledgements
	ackBytes  = 256 << 10              // of payload, likewise
)

// mend connects an edge anew after its connection has ended. It reports whether the edge goes on.
func (j *Job) mend(e *edge) bool {
	if !e.mayMend() {
		return false
	}
	ctx, cancel := context.WithTimeout(j.life, mendTime)
	defer cancel()
	told := time.Now()
	for ctx.Err() == nil && !isRefused(j.knock(ctx, e.peer)) {
		if !e.dialled && time.Since(told) > tellPause {
			told = time.Now()
			if c, err := j.dial(ctx, e.peer, purposeMend, false); err == nil {
				c.Close()
			}
		}
		c, err := j.reconnect(ctx, e)
		if err == nil && e.resume(ctx, c, j) == nil {
			return true
		}
	}
	return false
}

// reconnect waits for another connection of an edge, or dials it.
func (j *Job) reconnect(ctx context.Context, e *edge) (net.Conn, error) {
	pause := time.NewTimer(mendPause)
	defer pause.Stop()
	if e.dialled {
		if c, err := j.dial(ctx, e.peer, purposeMend, false); err == nil {
			return c, nil
		}
	}
	select {
	case c := <-e.fresh:
		return c, nil
	case <-pause.C:
		return nil, errors.New("no connection yet")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// mayMend reports whether the neighbour may live after the end of the connection, and its host isn't silent.
func (e *edge) mayMend() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, isTCP := tcpOf(e.conn)
	return isTCP && e.stands.Load() && !e.goodbye && !e.foul && !e.orphaned && !isSilence(e.cause)
}

// isSilence reports whether a connection ended because nothing has come from its host for too long. The system says
// why packets didn't leave, if it knows.
func isSilence(err error) bool {
	return errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

// resume continues on another connection: both ends tell how many frames they have got. On an error
// it is closed.
func (e *edge) resume(ctx context.Context, c net.Conn, j *Job) error {
	var f frame
	err := within(ctx, c, func() (err error) {
		if _, err = c.Write(frame{kind: frameResume, from: j.Rank, to: e.peer, seq: e.received}.encode()); err == nil {
			f, err = readFrame(c, j.Size, 0)
		}
		return err
	})
	if err == nil {
		err = watchSilence(c)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch missed := f.seq - e.first; {
	case err != nil:
	case f.kind != frameResume || f.from != e.peer:
		err = fmt.Errorf("frame of kind %d from rank %d in place of a resumption", f.kind, f.from)
	case missed > uint32(len(e.sent)):
		err = fmt.Errorf("rank %d has got %d frames; this rank keeps %d to %d", e.peer, f.seq, e.first, e.first+uint32(len(e.sent)))
	default:
		e.forget(f.seq)
		e.conn, e.next, e.cause = c, 0, nil
		e.times++
		e.mended.Broadcast()
		e.out.force(e.ack(j)) // wakes the writer
		return nil
	}
	c.Close()
	return err
}

// ack is a frame with the number of received ones.
func (e *edge) ack(j *Job) []byte {
	return frame{kind: frameAck, from: j.Rank, to: e.peer, seq: e.received}.encode()
}

// count counts a received frame, and tells the other end now and then. The reader calls it.
func (j *Job) count(e *edge, f *frame) {
	e.received++
	if f.kind == frameAck {
		e.mu.Lock()
		defer e.mu.Unlock()
		if f.seq-e.first <= uint32(len(e.sent)) {
			e.forget(f.seq)
		}
	}
	e.bytes += len(f.payload)
	if e.received%ackEvery == 0 || e.bytes >= ackBytes {
		e.bytes = 0
		e.out.force(e.ack(j))
	}
}

// forget lets go of the frames before one: they have arrived. e.mu is held.
func (e *edge) forget(before uint32) {
	n := int(before - e.first)
	clear(e.sent[:n])
	e.sent, e.first, e.next = e.sent[n:], before, max(0, e.next-n)
}

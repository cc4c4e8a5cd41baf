package executor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// errand is a note for a rank that the control tree doesn't reach, because a rank in
// between has left. It goes over a connection of its own: purpose NotePurpose, then the
// length of what follows in 4 bytes, big-endian, the kind in one, and the note.
type errand struct {
	to   levels.Rank
	kind uint8
	note []byte
}

// NotePurpose is that of a connection which carries a note.
const NotePurpose uint8 = 3

// errandTime bounds carrying one, and hearing one.
const errandTime = 2 * time.Second

// maxErrand bounds the length of one, bytes.
const maxErrand = 1 << 20

// carry takes an errand to its rank, after those before it.
func (c *control) carry(e errand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errands = append(c.errands, e)
	if c.carried == nil {
		c.carried = make(chan struct{})
		go c.carryAll(c.carried) // deliverErrands waits for it
	}
}

// carryAll carries errands until there are none.
func (c *control) carryAll(carried chan struct{}) {
	for {
		c.mu.Lock()
		if len(c.errands) == 0 || c.ended.Load() {
			c.errands, c.carried = nil, nil
			c.mu.Unlock()
			close(carried)
			return
		}
		e := c.errands[0]
		c.errands = c.errands[1:]
		c.mu.Unlock()
		_ = c.deliver(e) // a rank that can't be reached has left, or is lost
	}
}

func (c *control) deliver(e errand) error {
	ctx, cancel := context.WithTimeout(context.Background(), errandTime)
	defer cancel()
	conn, err := c.job.Dial(ctx, e.to, NotePurpose)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(errandTime)); err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(1+len(e.note)))
	_, err = conn.Write(append(append(b, e.kind), e.note...))
	return err
}

// deliverErrands waits for what is being carried.
func (c *control) deliverErrands(ctx context.Context) {
	c.mu.Lock()
	carried := c.carried
	c.mu.Unlock()
	if carried == nil {
		return
	}
	select {
	case <-carried:
	case <-ctx.Done():
		c.end()
		<-carried
	}
}

// accept takes a connection with a note, unless the job ends.
func (c *control) accept(from levels.Rank, conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() {
		conn.Close()
		return
	}
	c.takers.Go(func() { _ = c.take(from, conn) }) // a peer that says nonsense is not heard
}

// end stops carrying and hearing notes.
func (c *control) end() {
	c.mu.Lock()
	c.ended.Store(true)
	c.mu.Unlock()
	c.takers.Wait()
}

// take hears what a rank says over a connection of its own, and closes that.
func (c *control) take(from levels.Rank, conn net.Conn) error {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(errandTime)); err != nil {
		return err
	}
	var head [5]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return fmt.Errorf("a note from rank %d: %w", from, err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > maxErrand {
		return fmt.Errorf("%w: a note of %d bytes from rank %d; allowed are 1 to %d", ErrProtocol, n, from, maxErrand)
	}
	note := make([]byte, n-1)
	if _, err := io.ReadFull(conn, note); err != nil {
		return errors.Join(ErrProtocol, err)
	}
	c.hear(from, head[4], note)
	return nil
}

package pairs

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// Line is a rank's end of a connection with the other rank of its pair. Messages arrive in order.
type Line interface {
	// Send sends b. It may return before the other rank has it.
	Send(ctx context.Context, b []byte) error
	// Recv fills b with the next message of as many bytes.
	Recv(ctx context.Context, b []byte) error
}

const (
	orderBytes  = 16 // of an order: bytes of a message, and how many
	answerBytes = 8  // of an answer: the follower's clock, ns since 1970
)

// theEnd is an order without messages of a negative length: the follower is free.
const theEnd = -1

// Leader is the rank of a pair that gives the orders. It serves one goroutine.
type Leader struct {
	line   Line
	buf    []byte
	order  [orderBytes]byte
	answer [answerBytes]byte
}

// NewLeader returns the leader on a line. At the other end a rank calls [Follow].
func NewLeader(l Line) *Leader { return &Leader{line: l} }

// Trip says how long messages took there, and their answer back.
type Trip struct {
	All     time.Duration // from before the order until the answer was there
	Sending time.Duration // of it, until all messages were sent
	// Ahead is how much later the follower's clock is, as far as half of All tells.
	Ahead time.Duration
}

// Put sends count messages of size bytes and waits for their answer.
func (l *Leader) Put(ctx context.Context, size int64, count int) (t Trip, err error) {
	b := l.room(size)
	begun := time.Now()
	if err = l.say(ctx, size, count); err != nil {
		return t, err
	}
	said := time.Now()
	for range count {
		if err = l.line.Send(ctx, b); err != nil {
			return t, err
		}
	}
	t.Sending = time.Since(said)
	err = l.line.Recv(ctx, l.answer[:])
	t.All = time.Since(begun)
	theirs := int64(binary.LittleEndian.Uint64(l.answer[:]))
	t.Ahead = time.Duration(theirs - begun.Add(t.All/2).UnixNano())
	return t, err
}

// Get has the follower send one message of size bytes, and returns how long the order and
// the message took.
func (l *Leader) Get(ctx context.Context, size int64) (time.Duration, error) {
	b := l.room(size)
	begun := time.Now()
	if err := l.say(ctx, size, -1); err != nil {
		return 0, err
	}
	err := l.line.Recv(ctx, b)
	return time.Since(begun), err
}

// End lets the follower go.
func (l *Leader) End(ctx context.Context) error { return l.say(ctx, theEnd, 0) }

// room returns so many bytes of any content.
func (l *Leader) room(size int64) []byte {
	if int64(len(l.buf)) < size {
		l.buf = make([]byte, size)
	}
	return l.buf[:size]
}

func (l *Leader) say(ctx context.Context, size int64, count int) error {
	binary.LittleEndian.PutUint64(l.order[:], uint64(size))
	binary.LittleEndian.PutUint64(l.order[orderBytes/2:], uint64(count))
	return l.line.Send(ctx, l.order[:])
}

// Limit bounds a follower's work for one order.
type Limit struct {
	Bytes int64 // of a message
	Count int   // messages
}

// Follow obeys the leader at the other end of a line until that ends or ctx does. An order
// beyond the limit is an error.
func Follow(ctx context.Context, l Line, most Limit) error {
	var order [orderBytes]byte
	var answer [answerBytes]byte
	var buf []byte
	for {
		if err := l.Recv(ctx, order[:]); err != nil {
			return err
		}
		size := int64(binary.LittleEndian.Uint64(order[:]))
		count := int64(binary.LittleEndian.Uint64(order[orderBytes/2:]))
		switch {
		case size < 0:
			return nil
		case size > most.Bytes || max(count, -count) > int64(most.Count) || count < -int64(most.Count):
			return fmt.Errorf("asked for %d messages of %d bytes; allowed are %d of %d", count, size, most.Count, most.Bytes)
		case int64(len(buf)) < size:
			buf = make([]byte, size)
		}
		move := l.Recv
		if count < 0 {
			move = l.Send
		}
		for range max(count, -count) {
			if err := move(ctx, buf[:size]); err != nil {
				return err
			}
		}
		if count < 0 {
			continue
		}
		binary.LittleEndian.PutUint64(answer[:], uint64(time.Now().UnixNano()))
		if err := l.Send(ctx, answer[:]); err != nil {
			return err
		}
	}
}

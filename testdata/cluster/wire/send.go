package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	messageBytes = 256 << 10 // of the size whose burst a careless shaper lets through
	streamBytes  = 4 << 20

	messageLeast = 0.9  // the rest is for a burst of the shaper, 20 KiB here
	streamLeast  = 0.95 // the same burst is nothing here; the rest is for the clock
	slow         = 1.5  // from here on something else than the rate bounds the link, which is said but is no failure
)

// errFast is wrapped when messages cross in less than their wire time.
var errFast = errors.New("not shaped: crosses faster than the rate allows")

// A sender holds the connection it measures. It is for one goroutine.
type sender struct {
	conn        net.Conn
	bytesPerSec float64
	roundTrip   time.Duration // of an empty message, the part of an exchange that is not payload
	buf         []byte        // header and payload
}

func send(addr string, bytesPerSec float64, stdout io.Writer) error {
	conn, err := net.DialTimeout("tcp", addr, acceptWithin)
	if err != nil {
		return err
	}
	defer conn.Close()
	s := &sender{conn: conn, bytesPerSec: bytesPerSec, buf: make([]byte, headerBytes+streamBytes)}
	if s.roundTrip, err = s.least(0, 50); err != nil {
		return err
	}
	return errors.Join(
		s.judge(stdout, "message", messageBytes, 30, messageLeast),
		s.judge(stdout, "stream", streamBytes, 3, streamLeast),
	)
}

// judge prints the shortest crossing of some messages of length bytes and wraps errFast when it is below limit wire times.
func (s *sender) judge(stdout io.Writer, what string, length, tries int, limit float64) error {
	took, err := s.least(length, tries)
	if err != nil {
		return fmt.Errorf("%s of %d bytes: %w", what, length, err)
	}
	took -= s.roundTrip
	ratio := took.Seconds() / (float64(length) / s.bytesPerSec)
	note := ""
	if ratio > slow {
		note = ", slow: the machine does not reach the rate"
	}
	if _, err := fmt.Fprintf(stdout, "  %-7s %4d KiB  %8.3f ms  %.2f of its wire time (at least %.2f wanted)%s\n",
		what, length>>10, took.Seconds()*1e3, ratio, limit, note); err != nil {
		return err
	}
	if ratio < limit {
		return fmt.Errorf("%s of %d bytes: %w", what, length, errFast)
	}
	return nil
}

// least is the shortest of some exchanges: other load on the machine only makes them longer. It stops after two seconds'
// worth of them, for slow links.
func (s *sender) least(length, tries int) (time.Duration, error) {
	var least, sum time.Duration
	for try := 0; try < tries && sum < 2*time.Second; try++ {
		took, err := s.exchange(length)
		if err != nil {
			return 0, err
		}
		if try == 0 || took < least {
			least = took
		}
		sum += took
		time.Sleep(5 * time.Millisecond) // the shaper's bucket fills up again: the next burst is as large as can be
	}
	return least, nil
}

// exchange sends one message of length payload bytes and waits until all of it has arrived.
func (s *sender) exchange(length int) (time.Duration, error) {
	binary.BigEndian.PutUint64(s.buf, uint64(length))
	start := time.Now()
	if _, err := s.conn.Write(s.buf[:headerBytes+length]); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(s.conn, s.buf[:1]); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}

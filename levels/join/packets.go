package join

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// PacketAdvice is what to do about a [PacketError].
const PacketAdvice = "a network on the way has a smaller MTU, and the ICMP messages that say so don't come through; " +
	"give the hosts' interfaces its MTU (ip link set DEVICE mtu N), or let ICMP through"

// PacketError says that small packets come to a rank and large ones don't.
type PacketError struct {
	From, To levels.Rank
	Size     int // of packets that don't arrive, bytes
}

// Error has the advice.
func (e *PacketError) Error() string {
	return fmt.Sprintf("small packets from rank %d come to rank %d, those of %d bytes don't: %s", e.From, e.To, e.Size, PacketAdvice)
}

// LostBytes is the size of packets that get lost.
func (e *PacketError) LostBytes() int { return e.Size }

const (
	probeBytes = 32 << 10        // of a message in packets of full size, the jumbo ones of 9000 bytes too
	probeTime  = 3 * time.Second // for its answer: a lost packet has been sent three times by then
	mostLapses = 2               // timeouts of one packet in a row that a network may have without a fault
)

// Probe finds out over a connection of its own whether packets of all sizes come to another rank, and their answers back:
// first a byte, then a message of many packets. It returns the addresses of both ends of the connection. The error is a
// [ReachError] without a connection, and a [PacketError] if only large packets get lost.
func (j *Job) Probe(ctx context.Context, peer levels.Rank) (at, from netip.AddrPort, err error) {
	if err := j.dialable(peer, 0); err != nil {
		return at, from, err
	}
	c, err := j.dial(ctx, peer, purposeProbe, false)
	if err != nil {
		return at, from, err
	}
	defer c.Close()
	at, from = c.RemoteAddr().(*net.TCPAddr).AddrPort(), c.LocalAddr().(*net.TCPAddr).AddrPort()
	ctx, stop := context.WithTimeout(ctx, probeTime)
	defer stop()
	return at, from, within(ctx, c, func() error {
		if err := ask(c, 1); err != nil {
			return fmt.Errorf("connected at %s, but nothing comes back: %w", at, err)
		}
		before := sentOn(c)
		err := ask(c, probeBytes)
		if err == nil {
			return nil
		}
		if s := sentOn(c); s.isStuck() && s.acked == before.acked {
			return &PacketError{j.Rank, peer, s.packet}
		}
		return fmt.Errorf("connected at %s, and a byte comes back, but no answer to %d bytes: %w", at, probeBytes, err)
	})
}

// ask sends n bytes and waits for the answer of [answerProbe].
func ask(c net.Conn, n int) error {
	if _, err := c.Write(make([]byte, n)); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// answerProbe answers the two messages of a probe, until the job ends.
func (j *Job) answerProbe(_ levels.Rank, _ uint8, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(j.life, func() { c.Close() })()
	c.SetDeadline(time.Now().Add(2 * probeTime))
	for _, n := range []int64{1, probeBytes} {
		if _, err := io.CopyN(io.Discard, c, n); err != nil {
			return
		}
		if _, err := c.Write([]byte{1}); err != nil {
			return
		}
	}
}

// sent is how far the system is with what was written to a connection. The zero value is unknown.
type sent struct {
	acked   uint64 // bytes
	unacked int    // packets, and bytes not sent yet
	lapses  int    // timeouts in a row of the oldest of these
	packet  int    // bytes of the largest ones
}

// isStuck reports whether packets get lost, one and the same again and again.
func (s sent) isStuck() bool { return s.unacked > 0 && s.lapses >= mostLapses }

// sentOn asks the system about the TCP connection below c.
func sentOn(c net.Conn) sent {
	t, ok := tcpOf(c)
	if !ok {
		return sent{}
	}
	return systemSent(t)
}

// lossError is the error of a connection whose packets get lost, though it could be made.
type lossError struct {
	err    error
	packet int // bytes of the largest ones
}

func (e *lossError) Error() string {
	return fmt.Sprintf("%v; packets of up to %d bytes were sent again and again: they get lost, or the MTU on the way is smaller", e.err, e.packet)
}

func (e *lossError) Unwrap() error { return e.err }

// explainSilence returns the error of a connection, as a [lossError] if it is one.
func explainSilence(c net.Conn, err error) error {
	if err == nil {
		return nil
	}
	if s := sentOn(c); s.isStuck() {
		return &lossError{err, s.packet}
	}
	return err
}

// isLoss reports whether err comes from packets that get lost.
func isLoss(err error) bool {
	_, is := errors.AsType[*lossError](err)
	return is
}

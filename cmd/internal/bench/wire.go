package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/kit/payload"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/ports"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// wire is a plain TCP connection between rank 0 and the lowest rank on another node.
// It times a one-way stream beside collectives: no collective between nodes can be
// faster. Other ranks hold none.
type wire struct {
	conn  net.Conn // nil on ranks without a part
	sends bool
}

const (
	wireTag  = 1 << 20          // of the message with the addresses
	wireWait = 10 * time.Second // for the connection
)

// openWire connects the two ranks. All ranks of the communicator call it.
func openWire(ctx context.Context, c *planner.Comm) (*wire, error) {
	far, err := firstElsewhere(c.Topology())
	if err != nil {
		return nil, err
	}
	switch c.Rank() {
	case 0:
		return offerWire(ctx, c, far)
	case far:
		return takeWire(ctx, c)
	}
	return &wire{}, nil
}

// firstElsewhere returns the lowest rank on another node than rank 0's.
func firstElsewhere(t *levels.Topology) (int, error) {
	for r := range levels.Rank(t.Size()) {
		if t.Node(r) != t.Node(0) {
			return int(r), nil
		}
	}
	return 0, errors.New("all ranks are on one node; a wire is between two")
}

// offerWire listens, tells the other rank the addresses and a token, and accepts only a
// connection with the token.
func offerWire(ctx context.Context, c *planner.Comm, to int) (*wire, error) {
	within, err := ports.Parse(os.Getenv(env.Ports))
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	l, err := within.Listen("tcp", "")
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	defer l.Close()
	addresses, err := ownAddresses(l.Addr().(*net.TCPAddr).Port)
	if err != nil {
		return nil, fmt.Errorf("wire: %w", err)
	}
	token := rand.Text()
	if err := planner.Send(ctx, c, to, wireTag, []byte(token+" "+strings.Join(addresses, " "))); err != nil {
		return nil, err
	}
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(wireWait))
	for {
		conn, err := l.Accept()
		if err != nil {
			return nil, fmt.Errorf("wire: rank %d doesn't connect: %w", to, err)
		}
		got := make([]byte, len(token))
		_ = conn.SetReadDeadline(time.Now().Add(wireWait))
		if _, err := io.ReadFull(conn, got); err == nil && bytes.Equal(got, []byte(token)) {
			_ = conn.SetReadDeadline(time.Time{})
			return &wire{conn: conn, sends: true}, nil
		}
		conn.Close()
	}
}

// takeWire connects to rank 0, at the first answering address.
func takeWire(ctx context.Context, c *planner.Comm) (*wire, error) {
	text := make([]byte, 8<<10)
	n, err := planner.Recv(ctx, c, 0, wireTag, text)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(string(text[:n]))
	var errs []error
	for _, address := range words[1:] {
		conn, err := net.DialTimeout("tcp", address, wireWait/time.Duration(len(words)))
		if err == nil {
			_, err = io.WriteString(conn, words[0])
		}
		if err == nil {
			return &wire{conn: conn}, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("wire: %w", errors.Join(errs...))
}

// ownAddresses returns this host's addresses with a port, loopback ones last.
func ownAddresses(port int) ([]string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var near, far []string
	for _, a := range all {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.IsLinkLocalUnicast() {
			continue
		}
		address := net.JoinHostPort(ip.IP.String(), fmt.Sprint(port))
		if ip.IP.IsLoopback() {
			near = append(near, address)
		} else {
			far = append(far, address)
		}
	}
	return append(far, near...), nil
}

func (w *wire) close() {
	if w.conn != nil {
		w.conn.Close()
	}
}

// stream moves buf from one rank to the other. The other rank answers with a byte at the end. It
// returns the sender's time, and 0 on all other ranks.
func (w *wire) stream(buf []byte) (time.Duration, error) {
	if w.conn == nil {
		return 0, nil
	}
	begin := time.Now()
	answer := make([]byte, 1)
	if !w.sends {
		if _, err := io.ReadFull(w.conn, buf); err != nil {
			return 0, fmt.Errorf("wire: %w", err)
		}
		_, err := w.conn.Write(answer)
		return 0, err
	}
	_, err := w.conn.Write(buf)
	if err == nil {
		_, err = io.ReadFull(w.conn, answer)
	}
	if err != nil {
		return 0, fmt.Errorf("wire: %w", err)
	}
	return time.Since(begin), nil
}

// newWireSubject returns a stream of as many bytes, measured like an operation.
func newWireSubject(c, own *planner.Comm, w *wire, r tasks.Request) *subject {
	return &subject{comm: c, own: own, request: r, wire: w, perCall: 1, wrong: make([]int64, 1), recv: payload.Buffer(r.Bytes())}
}

// takeWireSample streams perCall times. All ranks begin together.
func (s *subject) takeWireSample(ctx context.Context) (time.Duration, error) {
	if err := planner.Barrier(ctx, s.own); err != nil {
		return 0, err
	}
	took := time.Duration(0)
	for range s.perCall {
		d, err := s.wire.stream(s.recv)
		if err != nil {
			return 0, err
		}
		took += d
	}
	return took, planner.Barrier(ctx, s.own)
}

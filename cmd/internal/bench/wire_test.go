package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// A wire is between rank 0 and the lowest rank elsewhere. It moves all bytes, and only its sender
// has a time.
func TestWire(t *testing.T) {
	sent := make([]byte, 300_000)
	_, _ = rand.Read(sent)
	err := planner.Run(t.Context(), "3x2", nil, func(ctx context.Context, c *planner.Comm) error {
		w, err := openWire(ctx, c)
		if err != nil {
			return err
		}
		defer w.close()
		buf := make([]byte, len(sent))
		if c.Rank() == 0 {
			copy(buf, sent)
		}
		took, err := w.stream(buf)
		if err != nil {
			return err
		}
		if holds := c.Rank() == 0 || c.Rank() == 2; holds != (w.conn != nil) || (took > 0) != (c.Rank() == 0) || holds != bytes.Equal(buf, sent) {
			t.Errorf("rank %d: connection %v, %v, the bytes of rank 0: %v", c.Rank(), w.conn, took, bytes.Equal(buf, sent))
		}
		return planner.Barrier(ctx, c)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Whoever connects without the token is hung up on, and the rank that has it is waited for.
func TestWireToken(t *testing.T) {
	err := planner.Run(t.Context(), "2x1", nil, func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == 0 {
			w, err := offerWire(ctx, c, 1)
			if err == nil {
				defer w.close()
				_, err = w.stream([]byte("hello"))
			}
			return err
		}
		text := make([]byte, 8<<10)
		n, err := planner.Recv(ctx, c, 0, wireTag, text)
		if err != nil {
			return err
		}
		words := strings.Fields(string(text[:n]))
		if len(words) < 2 {
			return fmt.Errorf("rank 0 tells %q; want a token and addresses", words)
		}
		stranger, err := net.Dial("tcp", words[len(words)-1])
		if err != nil {
			return err
		}
		defer stranger.Close()
		if _, err := io.WriteString(stranger, strings.Repeat("x", len(words[0]))); err != nil {
			return err
		}
		if got, err := io.ReadAll(stranger); err != nil || len(got) > 0 {
			t.Errorf("a stranger gets %q, %v", got, err)
		}
		conn, err := net.Dial("tcp", words[len(words)-1])
		if err != nil {
			return err
		}
		w := &wire{conn: conn}
		defer w.close()
		buf := make([]byte, 5)
		if _, err := io.WriteString(conn, words[0]); err != nil {
			return err
		}
		if _, err := w.stream(buf); err != nil || string(buf) != "hello" {
			t.Errorf("the stream is %q, %v", buf, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFirstElsewhere(t *testing.T) {
	for spec, want := range map[string]int{"2x1": 1, "2x3": 3, "3x2/rr": 1, "a:1,b:4": 1, "4": -1, "1x2": -1} {
		got, err := firstElsewhere(tasktest.Topology(t, spec))
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%s: rank %d, %v; want %d", spec, got, err, want)
		}
	}
}

// Loopback comes last among the addresses that are offered, and each has the port.
func TestOwnAddresses(t *testing.T) {
	all, err := ownAddresses(4711)
	if err != nil {
		t.Fatal(err)
	}
	loopback := false
	for _, a := range all {
		host, port, err := net.SplitHostPort(a)
		if err != nil || port != "4711" {
			t.Errorf("%q, %v; want port 4711", a, err)
		}
		if is := net.ParseIP(host).IsLoopback(); is {
			loopback = true
		} else if loopback {
			t.Errorf("%s comes behind loopback in %q", a, all)
		}
	}
}

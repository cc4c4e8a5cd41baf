package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReasonBesideDeadline: the deadline cuts the last attempt off, but what came of
// the one before is the reason.
func TestReasonBesideDeadline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	attempts := 0
	hello := func() greeting {
		if attempts++; attempts == 2 {
			<-ctx.Done()
		}
		return newGreeting(purposeRendezvous, 1, 0)
	}
	_, err = race(ctx, []target{{network: "tcp", address: nobody}}, credentials{}, hello, func(error) bool { return true })
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), nobody) {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
}

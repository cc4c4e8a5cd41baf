package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// recvAny receives from any rank, blockingly, and returns from which.
func recvAny(ctx context.Context, w *executor.World, at int, tag int32, buf []byte) (int, error) {
	t, err := w.Endpoint(levels.Rank(at)).Comm(0).RecvAny(ctx, tag, 0, buf)
	if err != nil {
		return -1, err
	}
	err = t.Wait(ctx)
	return int(t.Peer()), err
}

// Messages that have come are taken in the order in which they came: many of one rank don't
// hold up one of another.
func TestAnySourceTakesTheOldest(t *testing.T) {
	w := newWorld(t, 3, executor.Config{})
	succeed(t, w, func(ctx context.Context, r int) error {
		if r > 0 {
			return nil
		}
		want := []int{1, 1, 1, 2, 1, 1, 1, 0}
		for i, from := range want { // one goroutine speaks for all: small messages go at once
			if err := send(ctx, w, from, 0, 5, message(8, i)); err != nil {
				return err
			}
			if err := send(ctx, w, from, 0, 9, nil); err != nil {
				return err
			}
			if _, err := recv(ctx, w, 0, from, 9, nil); err != nil { // what came before it has come too
				return err
			}
		}
		var got []int
		for i := range want {
			buf := make([]byte, 8)
			from, err := recvAny(ctx, w, 0, 5, buf)
			if err != nil {
				return err
			}
			if got = append(got, from); !bytes.Equal(buf, message(8, i)) {
				return fmt.Errorf("message %d from rank %d is not the one that came as this", i, from)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("messages taken from %v, want %v", got, want)
		}
		return nil
	})
}

// A message goes to the receive that was posted first, be it from its rank or from any.
func TestAnySourceInTheOrderOfReceives(t *testing.T) {
	for _, n := range []int{1, 100_000} {
		w := newWorld(t, 2, executor.Config{})
		succeed(t, w, func(ctx context.Context, r int) error {
			if r == 1 {
				for i := range 4 {
					if err := send(ctx, w, 1, 0, 0, message(n, i)); err != nil {
						return err
					}
				}
				return nil
			}
			c := w.Endpoint(0).Comm(0)
			var all [4]*executor.Transfer
			var bufs [4][]byte
			for i := range all {
				bufs[i] = make([]byte, n)
				var err error
				if i%2 == 0 {
					all[i], err = c.RecvAny(ctx, 0, 0, bufs[i])
				} else {
					all[i], err = c.Recv(ctx, 1, 0, 0, bufs[i])
				}
				if err != nil {
					return err
				}
			}
			for i, t := range all {
				if err := t.Wait(ctx); err != nil {
					return err
				}
				if !bytes.Equal(bufs[i], message(n, i)) || t.Peer() != 1 || t.Len() != n {
					return fmt.Errorf("receive %d got another message than the one sent as this, from rank %d", i, t.Peer())
				}
			}
			return nil
		})
	}
}

// A receive whose context ends before there is a message takes none with it, and breaks
// nothing: whether somebody waits for it or nobody does, posted alone or between others.
func TestReceiveCancelled(t *testing.T) {
	for _, waited := range []bool{true, false} {
		for i, n := range []int{1, 100_000, 1, 100_000} {
			w := newWorld(t, 2, executor.Config{})
			ctx, cancel := context.WithCancelCause(t.Context())
			c := w.Endpoint(0).Comm(0)
			receive, peer := c.RecvAny, levels.Rank(-1)
			if i >= 2 {
				receive, peer = func(ctx context.Context, tag int32, of tasks.Datatype, buf []byte) (*executor.Transfer, error) {
					return c.RecvAlone(ctx, 1, tag, of, buf)
				}, 1
			}
			first, err := receive(ctx, 0, 0, make([]byte, n))
			if err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, n)
			second, err := receive(t.Context(), 0, 0, buf)
			if err != nil {
				t.Fatal(err)
			}
			if !waited {
				first.Watch(ctx)
			}
			cancel(errEnough)
			if waited {
				err = first.Wait(ctx)
			} else {
				err = first.Wait(t.Context())
			}
			if !errors.Is(err, errEnough) || first.Peer() != peer {
				t.Fatalf("the cancelled receive: %v, from rank %d", err, first.Peer())
			}
			if _, err := receive(ctx, 0, 0, nil); !errors.Is(err, errEnough) {
				t.Fatalf("under a context that has ended: %v", err)
			}
			succeed(t, w, func(ctx context.Context, r int) error {
				if r == 1 {
					return send(ctx, w, 1, 0, 0, message(n, 3))
				}
				return second.Wait(ctx)
			})
			if !bytes.Equal(buf, message(n, 3)) || second.Peer() != 1 {
				t.Errorf("the other receive got another message, from rank %d", second.Peer())
			}
		}
	}
}

// When the bytes of a message are on their way, a context that ends breaks the communicator:
// another rank writes into the buffer.
func TestAnySourceCancelledTooLate(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	offered, err := w.Endpoint(1).Comm(0).Send(t.Context(), 0, 0, 0, make([]byte, 1<<20)) // nobody drives rank 1
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context(), w, 1, 0, 1, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := recv(t.Context(), w, 0, 1, 1, nil); err != nil { // the offer has come
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	held, release := make(chan bool), make(chan bool)
	go w.Endpoint(1).Hold(func(wire.Sink) { close(held); <-release }) // so that no byte leaves
	<-held
	c := w.Endpoint(0).Comm(0)
	got, err := c.RecvAny(ctx, 0, 0, make([]byte, 1<<20))
	if err != nil || got.Peer() != 1 {
		t.Fatalf("%v, from rank %d", err, got.Peer())
	}
	cancel(errEnough)
	ended := make(chan error)
	go func() { ended <- got.Wait(ctx) }()
	for err == nil { // until rank 0 knows that it is broken
		_, err = c.RecvAny(t.Context(), 7, 0, nil)
	}
	close(release)
	var peer *executor.PeerError
	if err := <-ended; !errors.Is(err, errEnough) {
		t.Errorf("the receive: %v", err)
	}
	_ = offered.Wait(t.Context()) // its bytes may have left meanwhile
	if err := send(t.Context(), w, 1, 0, 0, nil); !errors.As(err, &peer) || peer.Rank != 0 {
		t.Errorf("a later send: %v", err)
	}
}

// A message that is too long is an error of its receive only.
func TestAnySourceTruncated(t *testing.T) {
	for _, n := range []int{8, 100_000} {
		w := newWorld(t, 2, executor.Config{})
		g := newGuarded(4)
		errs := ranks(t, w, func(ctx context.Context, r int) error {
			if r == 1 {
				return errors.Join(send(ctx, w, 1, 0, 0, message(n, 0)), send(ctx, w, 1, 0, 0, message(2, 2)))
			}
			if from, err := recvAny(ctx, w, 0, 0, g.buf); from != 1 || !errors.Is(err, executor.ErrTruncated) {
				return fmt.Errorf("rank %d, error %w", from, err)
			}
			_, err := recvAny(ctx, w, 0, 0, make([]byte, 2))
			return err
		})
		if err := errors.Join(errs...); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		g.check(t)
	}
}

// What ranks sent before they left can be received; then there is nobody any more.
func TestAnySourceWhenAllHaveLeft(t *testing.T) {
	w := newWorld(t, 3, executor.Config{})
	pending, err := w.Endpoint(0).Comm(0).RecvAny(t.Context(), 4, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, w, func(ctx context.Context, r int) error {
		if r > 0 {
			return errors.Join(send(ctx, w, r, 0, 3, message(9, r)), w.Endpoint(levels.Rank(r)).Comm(0).Close())
		}
		if err := pending.Wait(ctx); !errors.Is(err, executor.ErrClosed) {
			return fmt.Errorf("a posted receive: %w", err)
		}
		for range 2 {
			buf := make([]byte, 9)
			if from, err := recvAny(ctx, w, 0, 3, buf); err != nil || !bytes.Equal(buf, message(9, from)) {
				return fmt.Errorf("the message sent before: %v from rank %d, %w", buf, from, err)
			}
		}
		if _, err := recvAny(ctx, w, 0, 3, nil); !errors.Is(err, executor.ErrClosed) {
			return fmt.Errorf("a later receive: %w", err)
		}
		return nil
	})
	alone := newWorld(t, 1, executor.Config{}) // has itself
	own, err := alone.Endpoint(0).Comm(0).RecvAny(t.Context(), 0, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(send(t.Context(), alone, 0, 0, 0, nil), own.Wait(t.Context())); err != nil || own.Peer() != 0 {
		t.Errorf("from itself: %v, rank %d", err, own.Peer())
	}
}

// Ranks that all wait for a message from any rank are seen, reported and found to wait for each other.
func TestAnySourceIsSeen(t *testing.T) {
	var log lines
	inBubble(t, 3, executor.Config{StallAfter: time.Second, Stalls: log.logger()}, func(t *testing.T, w *executor.World) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		for _, err := range ranks(t, w, func(_ context.Context, r int) error {
			_, err := recvAny(ctx, w, r, 7, nil)
			return err
		}) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}
		waits := make(chan error, 1)
		again, stop := context.WithCancel(context.Background())
		go func() {
			_, err := recvAny(again, w, 1, 8, nil)
			waits <- err
		}()
		clocktest.Pass(time.Second)
		s := w.States([]levels.Rank{1})[0]
		stop()
		<-waits
		if got, want := s.String(), "in receive from any rank, tag 8, for "; !strings.HasPrefix(got, want) || !s.Open[0].Any || !slices.Equal(s.Open[0].Peers, []int{0, 2}) {
			t.Errorf("%s, %+v; want %s", got, s.Open, want)
		}
		for _, want := range []string{`receive from any rank, tag 7`, "missing=any", "deadlock: rank 0 is in receive from any rank, tag 7"} {
			if text := log.text(); !strings.Contains(text, want) {
				t.Errorf("reported %q, want %q", text, want)
			}
		}
	})
}

package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
)

// send sends a message, and waits until its buffer may be used again.
func send(ctx context.Context, w *executor.World, from, to int, tag int32, buf []byte) error {
	t, err := w.Endpoint(levels.Rank(from)).Comm(0).Send(ctx, levels.Rank(to), tag, 0, buf)
	if err != nil {
		return err
	}
	return t.Wait(ctx)
}

func recv(ctx context.Context, w *executor.World, at, from int, tag int32, buf []byte) (int, error) {
	return recvOn(ctx, w.Endpoint(levels.Rank(at)).Comm(0), levels.Rank(from), tag, buf)
}

// recvOn is recv on any communicator.
func recvOn(ctx context.Context, c *executor.Comm, from levels.Rank, tag int32, buf []byte) (int, error) {
	t, err := c.Recv(ctx, from, tag, 0, buf)
	if err != nil {
		return 0, err
	}
	err = t.Wait(ctx)
	return t.Len(), err
}

// post begins a receive.
func post(t failer, ctx context.Context, c *executor.Comm, from levels.Rank, tag int32, buf []byte) *executor.Transfer {
	t.Helper()
	posted, err := c.Recv(ctx, from, tag, 0, buf)
	if err != nil {
		t.Fatal(err)
	}
	return posted
}

// waitAll waits for transfers until one has failed.
func waitAll(ctx context.Context, all []*executor.Transfer) error {
	for _, t := range all {
		if err := t.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitLong waits for a transfer until the patience of a test ends.
func waitLong(tr *executor.Transfer) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return tr.Wait(ctx)
}

// message is n bytes that tell which message they are.
func message(n, id int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 17*id + n)
	}
	return b
}

var messageSizes = []int{0, 1, 63, 64, 4096, 4097, 1 << 20}

// Messages of all sizes arrive in order, each at the receive with its tag.
func TestMessagesArriveInOrder(t *testing.T) {
	for _, config := range []executor.Config{{}, {EagerMax: -1}, {EagerMax: 64, EagerBudget: 150}, {EagerBudget: 1}} {
		w := newWorld(t, 2, config)
		const rounds = 5
		succeed(t, w, func(ctx context.Context, r int) error {
			for i := range rounds {
				for id, n := range messageSizes {
					if r == 0 {
						if err := send(ctx, w, 0, 1, 5, message(n, id+i)); err != nil {
							return err
						}
						continue
					}
					buf := make([]byte, n+1)
					got, err := recv(ctx, w, 1, 0, 5, buf)
					if err != nil {
						return err
					}
					if !bytes.Equal(buf[:got], message(n, id+i)) {
						return fmt.Errorf("message %d of %d bytes came with %d", id, n, got)
					}
				}
			}
			return nil
		})
	}
}

// Far more messages than the budget allows are on their way at once; receives are
// posted by tag, the last first.
func TestManyInFlight(t *testing.T) {
	w := newWorld(t, 3, executor.Config{EagerBudget: 1000})
	const n = 300
	succeed(t, w, func(ctx context.Context, r int) error {
		c := w.Endpoint(levels.Rank(r)).Comm(0)
		next, before := levels.Rank((r+1)%3), levels.Rank((r+2)%3)
		var all []*executor.Transfer
		for i := range int32(n) {
			s, err := c.Send(ctx, next, i, 0, message(int(i%200)*30, int(i)))
			if err != nil {
				return err
			}
			s.Watch(ctx)
			all = append(all, s)
		}
		bufs := make([][]byte, n)
		for i := int32(n - 1); i >= 0; i-- {
			bufs[i] = make([]byte, int(i%200)*30)
			t, err := c.Recv(ctx, before, i, 0, bufs[i])
			if err != nil {
				return err
			}
			t.Watch(ctx)
			all = append(all, t)
		}
		if err := waitAll(ctx, all); err != nil {
			return err
		}
		for i, b := range bufs {
			if !bytes.Equal(b, message(i%200*30, i)) {
				return fmt.Errorf("message %d came wrong", i)
			}
		}
		return nil
	})
}

// A message that is too long for its receive is an error there only, and doesn't
// touch what is behind the buffer.
func TestTruncated(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	for _, n := range []int{8, 100_000} {
		for _, early := range []bool{false, true} {
			g := newGuarded(4)
			came := make(chan bool)
			errs := ranks(t, w, func(ctx context.Context, r int) error {
				if r == 0 {
					s, err := w.Endpoint(0).Comm(0).Send(ctx, 1, 0, 0, message(n, 0))
					close(came)
					if err != nil {
						return err
					}
					return s.Wait(ctx)
				}
				if early {
					<-came
				}
				_, err := recv(ctx, w, 1, 0, 0, g.buf)
				return err
			})
			if errs[0] != nil || !errors.Is(errs[1], executor.ErrTruncated) ||
				!strings.Contains(errs[1].Error(), fmt.Sprintf("%d bytes into 4", n)) {
				t.Errorf("%d bytes: sender %v, receiver %v, want %v", n, errs[0], errs[1], executor.ErrTruncated)
			}
			g.check(t)
		}
	}
	succeed(t, w, func(ctx context.Context, r int) error { // nothing is broken
		if r == 0 {
			return send(ctx, w, 0, 1, 0, message(1, 1))
		}
		_, err := recv(ctx, w, 1, 0, 0, make([]byte, 1))
		return err
	})
}

func TestTransferArguments(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	c := w.Endpoint(0).Comm(0)
	for _, test := range []struct {
		peer levels.Rank
		tag  int32
		want string
	}{
		{2, 0, "rank 2: ranks are 0 to 1"},
		{-1, 0, "rank -1: ranks are 0 to 1"},
		{1, -5, "tag -5 is negative"},
	} {
		for _, err := range []error{second(c.Send(t.Context(), test.peer, test.tag, 0, nil)), second(c.Recv(t.Context(), test.peer, test.tag, 0, nil))} {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("peer %d, tag %d: %v, want %q", test.peer, test.tag, err, test.want)
			}
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	for range 2 { // the second time because the communicator is broken
		if err := send(ctx, w, 0, 1, 0, nil); !errors.Is(err, errEnough) {
			t.Errorf("send under a cancelled context: %v", err)
		}
	}
}

// Messages and collectives don't mix, whatever their order on each rank.
func TestMessagesBesideCollectives(t *testing.T) {
	w := newWorld(t, 4, executor.Config{EagerBudget: 400})
	runs, bufs := sumsOn(t, w, "2x2", "shape=han,fs=64B,w=2,s=sm,i=adapt/chain", 0, 500)
	succeed(t, w, func(ctx context.Context, r int) error {
		c := w.Endpoint(levels.Rank(r)).Comm(0)
		var sends []*executor.Transfer
		for i := range 20 {
			s, err := c.Send(ctx, levels.Rank((r+1)%4), 0, 0, message(100*i, i))
			if err != nil {
				return err
			}
			s.Watch(ctx)
			sends = append(sends, s)
			if i == 10 {
				if err := runs[r].Start(ctx); err != nil {
					return err
				}
			}
		}
		for i := range 20 {
			buf := make([]byte, 100*i)
			if _, err := recv(ctx, w, r, (r+3)%4, 0, buf); err != nil {
				return err
			}
			if !bytes.Equal(buf, message(100*i, i)) {
				return fmt.Errorf("message %d came wrong", i)
			}
		}
		if err := waitAll(ctx, sends); err != nil {
			return err
		}
		return runs[r].Wait(ctx)
	})
	for r := range bufs {
		check(t, r, bufs[r], sums(4, 500))
	}
}

func TestCancelTransfer(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	errs := ranks(t, w, func(long context.Context, r int) error {
		if r == 1 {
			_, err := recv(ctx, w, 1, 0, 7, make([]byte, 1))
			return err
		}
		inCall(long, w, 0)
		cancel(errEnough)
		return send(long, w, 0, 1, 8, make([]byte, 1<<20))
	})
	if errs[1] != errEnough {
		t.Errorf("the cancelled receive: %v, want %v", errs[1], errEnough)
	}
	if !names(errs[0], 1) || !errors.Is(errs[0], errEnough) {
		t.Errorf("the other rank: %v, want a PeerError of rank 1", errs[0])
	}
}

// What a rank has sent before it left can still be received; what it will never
// answer ends.
func TestTransfersWithARankThatLeft(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	c, left := w.Endpoint(0).Comm(0), w.Endpoint(1).Comm(0)
	pending := post(t, t.Context(), c, 1, 1, nil)
	offered, err := c.Send(t.Context(), 1, 2, 0, make([]byte, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if err := send(t.Context(), w, 1, 0, 3, message(9, 9)); err != nil {
		t.Fatal(err)
	}
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"posted receive": pending.Wait(t.Context()), "large send": offered.Wait(t.Context())} {
		if !gone(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	buf := make([]byte, 9)
	if _, err := recv(t.Context(), w, 0, 1, 3, buf); err != nil || !bytes.Equal(buf, message(9, 9)) {
		t.Errorf("the message sent before: %v, %v", buf, err)
	}
	for what, err := range map[string]error{"send": second(c.Send(t.Context(), 1, 0, 0, nil)), "receive": second(c.Recv(t.Context(), 1, 3, 0, nil))} {
		if !gone(err) {
			t.Errorf("later %s: %v", what, err)
		}
	}
}

// gone tells whether err says that rank 1 has closed.
func gone(err error) bool { return names(err, 1) && errors.Is(err, executor.ErrClosed) }

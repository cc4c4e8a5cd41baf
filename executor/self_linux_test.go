package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// selfWorlds calls f with worlds of goroutine ranks and of processes.
func selfWorlds(t *testing.T, config executor.Config, f func(t *testing.T, w *executor.World, h *levels.Topology)) {
	onBoth(t, []string{"1x2", "2x1", "2x2"}, config, f)
}

// onBoth calls f with worlds of these topologies, of goroutine ranks and of processes.
func onBoth(t *testing.T, topos []string, config executor.Config, f func(t *testing.T, w *executor.World, h *levels.Topology)) {
	for _, topo := range topos {
		h, _ := parse(t, topo, "")
		t.Run("goroutines/"+topo, func(t *testing.T) { f(t, newWorld(t, h.Size(), config), h) })
		t.Run("processes/"+topo, func(t *testing.T) {
			p := openProcesses(t, h, proc.Config{Config: config}, nil)
			defer closeProcesses(t, p)
			f(t, p.World, h)
		})
	}
}

// A rank receives what it sends to itself, whichever it starts first; a large message
// waits for its receive.
func TestSelf(t *testing.T) {
	for _, config := range []executor.Config{{}, {EagerMax: -1}, {EagerMax: 64, EagerBudget: 150}} {
		selfWorlds(t, config, func(t *testing.T, w *executor.World, _ *levels.Topology) {
			succeed(t, w, func(ctx context.Context, r int) error {
				c := w.Endpoint(levels.Rank(r)).Comm(0)
				for id, n := range messageSizes {
					for _, receiveFirst := range []bool{false, true} {
						if err := toSelf(ctx, c, message(n, id), receiveFirst); err != nil {
							return fmt.Errorf("%d bytes, receive first %v: %w", n, receiveFirst, err)
						}
					}
				}
				return nil
			})
		})
	}
}

// toSelf sends one message to the rank itself and checks what comes.
func toSelf(ctx context.Context, c *executor.Comm, text []byte, receiveFirst bool) error {
	g := newGuarded(int64(len(text)))
	var both [2]*executor.Transfer
	for i := range both {
		var err error
		if (i == 0) == receiveFirst {
			both[i], err = c.Recv(ctx, c.Rank(), 1, 0, g.buf)
		} else {
			both[i], err = c.Send(ctx, c.Rank(), 1, 0, text)
		}
		if err != nil {
			return err
		}
	}
	if err := waitAll(ctx, both[:]); err != nil {
		return err
	}
	if !bytes.Equal(g.buf, text) {
		return errors.New("came wrong")
	}
	return nil
}

// Many messages to itself are on their way at once, more than the budget allows, and
// between them those of others and an allreduce. Receives are posted by tag, the last
// first, and two of each tag come in order.
func TestSelfManyInFlight(t *testing.T) {
	selfWorlds(t, executor.Config{EagerBudget: 1000}, func(t *testing.T, w *executor.World, h *levels.Topology) {
		const n, tags = 100, 50
		plan := tasktest.Plan(t, "shape=han,fs=4KiB,w=2,s=sm,i=adapt/chain")
		request := tasks.Request{Coll: tasks.Allreduce, Count: 500, Type: tasks.Int32, Op: tasks.Sum, InPlace: true}
		values := numbers(w.Size(), 500)
		runs := job{w, h, request, plan}.bind(t, nil, raws(values))
		length := func(i int) int { return i % 20 * 300 }
		succeed(t, w, func(ctx context.Context, r int) error {
			c := w.Endpoint(levels.Rank(r)).Comm(0)
			from := []levels.Rank{c.Rank(), levels.Rank((r + w.Size() - 1) % w.Size())}
			to := []levels.Rank{c.Rank(), levels.Rank((r + 1) % w.Size())}
			var all []*executor.Transfer
			begin := func(start func(context.Context, levels.Rank, int32, tasks.Datatype, []byte) (*executor.Transfer, error), peer levels.Rank, i int, buf []byte) error {
				t, err := start(ctx, peer, int32(i%tags), 0, buf)
				if err == nil {
					t.Watch(ctx)
					all = append(all, t)
				}
				return err
			}
			for i := range n {
				for _, peer := range to {
					if err := begin(c.Send, peer, i, message(length(i), i)); err != nil {
						return err
					}
				}
			}
			if err := runs[r].Do(ctx); err != nil {
				return err
			}
			bufs := make([][2][]byte, n)
			for k := range n {
				i := (tags - 1 - k%tags) + k/tags*tags // by tag the last first, of each tag the first first
				for j, peer := range from {
					bufs[i][j] = make([]byte, length(i))
					if err := begin(c.Recv, peer, i, bufs[i][j]); err != nil {
						return err
					}
				}
			}
			if err := waitAll(ctx, all); err != nil {
				return err
			}
			for i := range bufs {
				for j := range from {
					if !bytes.Equal(bufs[i][j], message(length(i), i)) {
						return fmt.Errorf("message %d from rank %d came wrong", i, from[j])
					}
				}
			}
			return nil
		})
		for r := range values {
			check(t, r, values[r], sums(w.Size(), 500))
		}
	})
}

// A message to itself that is too long for its receive is an error of the receive
// only, and doesn't touch what is behind the buffer.
func TestSelfTruncated(t *testing.T) {
	selfWorlds(t, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		succeed(t, w, func(ctx context.Context, r int) error {
			c := w.Endpoint(levels.Rank(r)).Comm(0)
			for _, n := range []int{8, 100_000} {
				g := newGuarded(4)
				s, err := c.Send(ctx, c.Rank(), 0, 0, message(n, 0))
				if err != nil {
					return err
				}
				got, err := recv(ctx, w, r, r, 0, g.buf)
				if !errors.Is(err, executor.ErrTruncated) {
					return fmt.Errorf("%d bytes into 4: %d bytes and error %w, want %w", n, got, err, executor.ErrTruncated)
				}
				if err := s.Wait(ctx); err != nil {
					return fmt.Errorf("the sender of %d bytes: %w", n, err)
				}
				g.check(t)
			}
			return toSelf(ctx, c, message(5, 5), false) // nothing is broken
		})
	})
}

// A rank that sleeps in a receive from itself hears of the message that another
// goroutine of it sends.
func TestSelfWakes(t *testing.T) {
	selfWorlds(t, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		for _, n := range []int{1, 1 << 20} {
			succeed(t, w, func(ctx context.Context, r int) error {
				sent := make(chan error, 1)
				go func() {
					_ = clocktest.Await(ctx, func() bool { return len(w.Endpoint(levels.Rank(r)).Waiting()) > 0 })
					clocktest.Pause(ctx, 10*time.Millisecond) // by then it mostly sleeps
					sent <- send(ctx, w, r, r, 0, message(n, r))
				}()
				buf := make([]byte, n)
				_, err := recv(ctx, w, r, r, 0, buf)
				if !bytes.Equal(buf, message(n, r)) {
					err = errors.Join(err, fmt.Errorf("%d bytes came wrong", n))
				}
				return errors.Join(err, <-sent)
			})
		}
	})
}

// Messages to itself that nobody receives are no reason not to close; a send that
// nobody has accepted ends then.
func TestSelfNeverReceived(t *testing.T) {
	selfWorlds(t, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		succeed(t, w, func(ctx context.Context, r int) error {
			alone := []levels.Rank{levels.Rank(r)}
			c := makeComm(t, w.Endpoint(alone[0]), 1, alone)
			for range 10 { // more than half of the budget
				if _, err := c.Send(ctx, 0, 3, 0, make([]byte, 4000)); err != nil {
					return err
				}
			}
			if err := c.Close(); err != nil {
				return err
			}
			c = makeComm(t, w.Endpoint(alone[0]), 2, alone)
			offered, err := c.Send(ctx, 0, 0, 0, make([]byte, 1<<20))
			if err != nil {
				return err
			}
			if err := c.Close(); !errors.Is(err, executor.ErrClosed) {
				return fmt.Errorf("close during a send: %w", err)
			}
			if err := offered.Wait(ctx); !errors.Is(err, executor.ErrClosed) {
				return fmt.Errorf("the send that nobody accepted: %w", err)
			}
			return toSelf(ctx, w.Endpoint(alone[0]).Comm(0), message(4000, 0), false)
		})
	})
}

// A cancelled receive from itself breaks the communicator: a send ends that is on its
// way, and nothing is written to the buffer any more.
func TestSelfCancel(t *testing.T) {
	selfWorlds(t, executor.Config{}, func(t *testing.T, w *executor.World, _ *levels.Topology) {
		g := newGuarded(1 << 20)
		errs := ranks(t, w, func(long context.Context, r int) error {
			if r > 0 {
				_, err := recv(long, w, r, r, 7, make([]byte, 1))
				return err
			}
			ctx, cancel := context.WithCancelCause(long)
			defer cancel(nil)
			offered, err := w.Endpoint(0).Comm(0).Send(long, 0, 8, 0, message(1<<20, 1))
			if err != nil {
				return err
			}
			time.AfterFunc(10*time.Millisecond, func() { cancel(errEnough) })
			_, err = recv(ctx, w, 0, 0, 7, g.buf)
			if ended := offered.Wait(long); !errors.Is(ended, errEnough) {
				return fmt.Errorf("a send that nobody accepted: %w", ended)
			}
			if later := send(long, w, 0, 0, 7, message(1<<20, 1)); !errors.Is(later, executor.ErrBroken) {
				return fmt.Errorf("a send afterwards: %w", later)
			}
			return err
		})
		if !errors.Is(errs[0], errEnough) { // by itself, or with the call before it where it came before the wait
			t.Errorf("the cancelled receive: %v, want %v", errs[0], errEnough)
		}
		for r, err := range errs[1:] {
			if !names(err, 0) {
				t.Errorf("rank %d: %v, want a PeerError of rank 0", r+1, err)
			}
		}
		if !bytes.Equal(g.whole, newGuarded(1<<20).whole) {
			t.Error("the buffer was written to")
		}
	})
}

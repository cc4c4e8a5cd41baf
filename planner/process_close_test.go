package planner_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// After an error that names a late rank, Close waits a second for it and no longer, whoever closes: it may hang.
func TestCloseAfterALateRank(t *testing.T) {
	for _, by := range []string{"Close", "Each"} {
		comms := joinProcesses(t, 3, 2, &planner.Options{CallTimeout: 100 * time.Millisecond, CloseTimeout: 10 * patience, StallAfter: -1})
		closed := make(chan struct{})
		var others sync.WaitGroup
		others.Add(2)
		go func() { others.Wait(); close(closed) }()
		for r, err := range each(comms, func(ctx context.Context, c *planner.Comm) error {
			if c.Rank() == 2 {
				select {
				case <-closed: // without having called anything
					return c.Close()
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			defer others.Done()
			if by == "Each" {
				return planner.Each(ctx, []*planner.Comm{c}, planner.Barrier)
			}
			err := planner.Barrier(ctx, c)
			_ = c.Close()
			return err
		}) {
			if late, is := errors.AsType[*planner.LateError](err); r < 2 && (!is || late.Late[0].State.Rank != 2) || r == 2 && errors.Is(err, errHangs) {
				t.Errorf("%s, rank %d: %v", by, r, err)
			}
		}
	}
}

// Ranks close in every order, some while others still run; what was sent before
// arrives.
func TestProcessesCloseOrders(t *testing.T) {
	for range 6 {
		comms := joinProcesses(t, 4, 2, nil)
		order := rand.Perm(4) // the places of the ranks
		closes := make([]chan struct{}, 5)
		for i := range closes {
			closes[i] = make(chan struct{}) // closed when the rank before begins to close
		}
		close(closes[0])
		noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
			big := make([]int64, 100_000)
			for range 3 {
				if err := planner.Bcast(ctx, c, big, 2); err != nil {
					return err
				}
			}
			right, left := (c.Rank()+1)%4, (c.Rank()+3)%4
			if err := planner.Send(ctx, c, right, 5, []int{c.Rank()}); err != nil {
				return err
			}
			<-closes[order[c.Rank()]]
			got := make([]int, 1)
			if _, err := planner.Recv(ctx, c, left, 5, got); err != nil || got[0] != left {
				return fmt.Errorf("from %d: %v, %v", left, got, err)
			}
			close(closes[order[c.Rank()]+1])
			if err := c.Close(); err != nil {
				return err
			}
			if err := sum(ctx, c); !errors.Is(err, planner.ErrClosed) {
				return fmt.Errorf("a call after Close: %v", err)
			}
			return c.Close()
		}))
	}
}

// What was made before Close can be called after it: it says so.
func TestProcessesUseAfterClose(t *testing.T) {
	comms := joinProcesses(t, 4, 2, nil)
	cols := make([]*planner.Collective, 4)
	allSucceed(t, comms, func(ctx context.Context, c *planner.Comm) (err error) {
		buf := make([]int64, 100_000)
		if cols[c.Rank()], err = planner.PrepareAllreduce(ctx, c, buf, buf, tasks.Sum); err != nil {
			return err
		}
		return cols[c.Rank()].Run(ctx)
	})
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		_, started := cols[c.Rank()].Start(ctx)
		_, split := c.Split(ctx, 0, 0)
		for what, err := range map[string]error{
			"run": cols[c.Rank()].Run(ctx), "start": started, "split": split,
			"send": planner.Send(ctx, c, (c.Rank()+1)%4, 0, []int{1}),
		} {
			if !errors.Is(err, planner.ErrClosed) {
				return fmt.Errorf("%s: %v", what, err)
			}
		}
		return nil
	}))
	clear(cols)
	for range 3 {
		runtime.GC() // the cleanups of slots that are no longer mapped
	}
}

// Close in the middle of a call is an error on all ranks, and it ends.
func TestProcessesCloseDuringCall(t *testing.T) {
	for _, size := range []int{1, 3_000_000} {
		comms := joinProcesses(t, 4, 2, nil)
		var started sync.WaitGroup
		started.Add(3)
		ended := make(chan struct{}) // closed when the call has on rank 2
		noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
			buf := make([]int32, size)
			if c.Rank() == 1 {
				<-ended
				return c.Close()
			}
			col, err := planner.PrepareAllreduce(ctx, c, buf, buf, tasks.Sum)
			if err != nil {
				return err
			}
			p, err := col.Start(ctx)
			started.Done()
			if err != nil {
				return err
			}
			if c.Rank() == 0 {
				started.Wait()
				if err := c.Close(); !errors.Is(err, planner.ErrClosed) {
					return fmt.Errorf("close during a call: %v", err)
				}
				if err := p.Wait(ctx); !errors.Is(err, planner.ErrClosed) {
					return fmt.Errorf("the call on the rank that closes: %v", err)
				}
				return nil
			}
			err = blames(p.Wait(ctx), 0)
			if c.Rank() == 2 {
				close(ended)
			}
			return errors.Join(err, c.Close())
		}))
	}
}

// Close waits for a rank that is late, and for no longer than it was told.
func TestCloseTimeout(t *testing.T) {
	for _, perNode := range []int{1, 2} {
		comms := joinProcesses(t, 2, perNode, &planner.Options{CloseTimeout: 200 * time.Millisecond})
		for r, err := range each(comms, planner.Barrier) {
			if err != nil {
				t.Fatalf("rank %d: %v", r, err)
			}
		}
		err := comms[0].Close()
		e, ok := errors.AsType[*join.PeerError](err)
		if !ok || e.Rank != 1 || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "waited for 200ms") {
			t.Errorf("%d per node: got error %v, want one that names rank 1 and the limit", perNode, err)
		}
		if err := comms[1].Close(); err != nil {
			t.Errorf("%d per node: rank 0 had said goodbye: %v", perNode, err)
		}
	}
}

// While Close waits it says which rank has not come to it. It says where that one stands, too.
func TestCloseNamesTheLate(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, perNode := range []int{1, 2} {
		said := &lockedBuffer{}
		comms := joinProcesses(t, 2, perNode, &planner.Options{StallAfter: 200 * time.Millisecond, Log: slog.New(slog.NewTextHandler(said, nil))})
		for r, err := range each(comms, planner.Barrier) {
			if err != nil {
				t.Fatalf("rank %d: %v", r, err)
			}
		}
		closed := make(chan error, 1)
		go func() { closed <- comms[0].Close() }()
		const want = "late: rank 1 has not come to Close for 0.2 s"
		clocktest.Until(t, want, func() bool { return strings.Contains(said.String(), want) })
		if err := errors.Join(comms[1].Close(), <-closed); err != nil {
			t.Errorf("%d per node: %v", perNode, err)
		}
	}
}

// Close doesn't wait for room towards a rank that closes without having received: the
// ring to it is full, and nobody reads it any more.
func TestCloseUnreceived(t *testing.T) {
	for _, perNode := range []int{1, 2} {
		for _, size := range []int{0, 1000, 4000} {
			t.Run(fmt.Sprintf("%d a node, %d bytes", perNode, size), func(t *testing.T) {
				comms := joinProcesses(t, 2, perNode, &planner.Options{CloseTimeout: 3 * time.Minute})
				var sent sync.WaitGroup
				sent.Add(1)
				for r, err := range each(comms, func(ctx context.Context, c *planner.Comm) error {
					if c.Rank() == 1 {
						sent.Wait()
						return c.Close()
					}
					for n := size + 64; n <= 64<<10; n += size + 64 { // all that goes without credit
						if err := planner.Send(ctx, c, 1, 1, make([]byte, size)); err != nil {
							return err
						}
					}
					sent.Done()
					return c.Close()
				}) {
					if err != nil {
						t.Errorf("rank %d: %v", r, err)
					}
				}
			})
		}
	}
}

// Joining and closing again and again leaves nothing: no goroutine, descriptor or
// mapping.
func TestProcessesLeaveNothing(t *testing.T) {
	cycle := func() {
		processes(t, 3, 2, nil, func(ctx context.Context, c *planner.Comm) error {
			buf := make([]int64, 50_000)
			return planner.Allreduce(ctx, c, buf, buf, tasks.Sum)
		})
	}
	cycle()
	before := leftovers(t)
	for range 30 {
		cycle()
	}
	var after [3]int
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if clocktest.Await(ctx, func() bool {
		runtime.GC()
		after = leftovers(t)
		// What others left before may have ended meanwhile: fewer is fine.
		return after[0] <= before[0] && after[1] <= before[1] && after[2] <= before[2]
	}) == nil {
		return
	}
	t.Errorf("goroutines, descriptors, mappings: %v before, %v after 30 cycles", before, after)
}

// leftovers counts goroutines, descriptors and mappings of shared memory.
func leftovers(t testing.TB) [3]int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("counting descriptors needs Linux's /proc: ", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return [3]int{runtime.NumGoroutine(), len(fds), strings.Count(string(maps), "memfd:tierflow")}
}

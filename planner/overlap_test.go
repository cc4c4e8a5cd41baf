package planner_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// underWay is told when a rank reports that it waits in a call.
type underWay chan struct{}

// Write takes a line of the log.
func (u underWay) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("request=barrier")) {
		select {
		case u <- struct{}{}:
		default:
		}
	}
	return len(line), nil
}

// A call that would overlap another goroutine's is refused, whichever way it is made, and names the other. The first
// call goes on, and so do started ones and those of a duplicate; later ones are as ever.
func TestOverlapsAreRefused(t *testing.T) {
	for name, join := range map[string]func(o *planner.Options) []*planner.Comm{
		"goroutines": func(o *planner.Options) []*planner.Comm { return localComms(t, "1x2", o) },
		"processes":  func(o *planner.Options) []*planner.Comm { return joinProcesses(t, 2, 1, o) },
	} {
		refused, waits := make(chan struct{}), make(underWay, 1)
		comms := join(&planner.Options{Log: slog.New(slog.NewTextHandler(waits, nil)), StallAfter: time.Millisecond})
		allSucceed(t, comms, func(ctx context.Context, c *planner.Comm) error {
			x := []int64{int64(c.Rank()) + 1}
			kept, err := planner.PrepareAllreduce(ctx, c, x, x, tasks.Sum)
			if err != nil {
				return err
			}
			other, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			blocks := func() error {
				_, err := planner.PrepareAlltoallv(ctx, c, make([]int64, 2), []int{1, 1}, make([]int64, 2), []int{1, 1})
				return err
			}
			if c.Rank() == 1 {
				<-refused
				return errors.Join(sum(ctx, other), planner.Barrier(ctx, c), blocks(), sum(ctx, c), other.Close())
			}
			var first error
			var others sync.WaitGroup
			others.Go(func() { first = planner.Barrier(ctx, c) })
			<-waits // and rank 1 isn't coming yet
			_, errSplit := c.Split(ctx, 0, 0)
			_, errDup := c.Dup(ctx)
			_, errValue := planner.AllreduceValue(ctx, c, 1.5, tasks.Sum)
			asked := tasks.Request{Coll: tasks.Allreduce, Count: 1, Type: tasks.Int64, Op: tasks.Min}
			for what, err := range map[string]error{
				"run": kept.Run(ctx), "now": planner.Allreduce(ctx, c, x, x, tasks.Max), "split": errSplit, "dup": errDup, "value": errValue,
				"counts of an alltoallv": blocks(), "raw.Run": raw.Run(ctx, c, asked, make([]byte, 8), make([]byte, 8)),
			} {
				if !errors.Is(err, planner.ErrBusy) || !strings.Contains(err.Error(), "barrier") || !strings.Contains(err.Error(), "overlap_test.go:") {
					t.Errorf("%s: %s beside a barrier: %v; want ErrBusy, with the barrier and its place", name, what, err)
				}
			}
			close(refused)
			err = sum(ctx, other) // beside the barrier: rank 1 comes to it afterwards
			others.Wait()
			return errors.Join(first, err, blocks(), sum(ctx, c), other.Close())
		})
	}
}

// Goroutines that share a communicator by mistake hear of it, at the latest when one of their calls has to wait. Sums may
// be wrong before: calls that follow each other on every rank, but in another order, don't overlap.
func TestSharingIsHeardOf(t *testing.T) {
	const goroutines, calls = 8, 200
	comms := localComms(t, "1x2", nil)
	var wrong, busy, right atomic.Int64
	heard := make(chan struct{})
	storm := func(ctx context.Context, c *planner.Comm, calls int) {
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for range calls {
					sum, err := planner.AllreduceValue(ctx, c, g, tasks.Sum)
					switch {
					case errors.Is(err, planner.ErrBusy):
						if busy.Add(1) == 1 {
							close(heard)
						}
						_ = c.Revoke(err) // as a program does that ends
						return
					case err != nil:
						return
					case sum == 2*g:
						right.Add(1)
					default:
						wrong.Add(1)
					}
				}
			})
		}
		all.Wait()
	}
	errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
		storm(ctx, c, calls)
		if c.Rank() == 1 { // by chance no two calls have overlapped yet; now those of rank 0 wait
			select {
			case <-heard:
			case <-ctx.Done():
			}
		}
		storm(ctx, c, 1)
		return nil
	})
	noErrors(t, errs)
	each(comms, func(_ context.Context, c *planner.Comm) error { return c.Close() })
	if busy.Load() == 0 {
		t.Errorf("nobody heard that calls overlap: %d sums right, %d wrong", right.Load(), wrong.Load())
	}
}

package planner_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// sum is a small allreduce that checks itself: ranks contribute their numbers.
func sum(ctx context.Context, c *planner.Comm) error {
	got := []int64{int64(c.Rank())}
	if err := planner.Allreduce(ctx, c, got, got, tasks.Sum); err != nil {
		return err
	}
	if want := int64(c.Size() * (c.Size() - 1) / 2); got[0] != want {
		return fmt.Errorf("sum %d, want %d", got[0], want)
	}
	return nil
}

// blames checks that an error is a PeerError of a rank.
func blames(err error, rank int) error {
	var peer *planner.PeerError
	if !errors.As(err, &peer) || int(peer.Rank) != rank {
		return fmt.Errorf("error %v, want one that blames rank %d", err, rank)
	}
	return nil
}

// A cancelled rank breaks the communicator everywhere, soon, for ever; closing
// works as always.
func TestProcessesCancel(t *testing.T) {
	comms := joinProcesses(t, 5, 2, nil)
	const culprit = 3
	why := errors.New("enough of it")
	var others sync.WaitGroup
	others.Add(len(comms) - 1)
	allSucceed(t, comms, func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() != culprit-1 {
			defer others.Done()
		}
		if err := sum(ctx, c); err != nil {
			return err
		}
		if c.Rank() == culprit-1 { // it comes too late: with what the culprit has sent it all could end well
			others.Wait()
			return blames(sum(ctx, c), culprit)
		}
		if c.Rank() != culprit {
			if err := blames(sum(ctx, c), culprit); err != nil {
				return err
			}
			if err := sum(ctx, c); !errors.Is(err, planner.ErrBroken) {
				return fmt.Errorf("a later call: %v", err)
			}
			return nil
		}
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
		if err := sum(ctx, c); !errors.Is(err, why) {
			return fmt.Errorf("the cancelled rank's error is %v", err)
		}
		return nil
	})
}

// Ranks that disagree hear of both requests, each of them.
func TestProcessesMismatch(t *testing.T) {
	processes(t, 4, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]int32, 1000)
		var err error
		if c.Rank() == 2 {
			err = planner.Bcast(ctx, c, buf, 1)
		} else {
			err = planner.Allreduce(ctx, c, buf, buf, tasks.Max)
		}
		if !errors.Is(err, planner.ErrMismatch) {
			return fmt.Errorf("error %v", err)
		}
		for _, part := range []string{"bcast", "allreduce"} {
			if !strings.Contains(err.Error(), part) {
				return fmt.Errorf("error %q lacks %q", err, part)
			}
		}
		return nil
	})
}

// A call without elements is over at once, unless the others came first; they, who gave
// some, and the rank that is in no call any more hear of the mismatch.
func TestProcessesMismatchWithoutElements(t *testing.T) {
	for _, perNode := range []int{1, 3} {
		comms := joinProcesses(t, 3, perNode, nil)
		var others sync.WaitGroup
		others.Add(2)
		allSucceed(t, comms, func(ctx context.Context, c *planner.Comm) error {
			buf := make([]int32, 10)
			if c.Rank() == 0 {
				buf = nil
			} else {
				defer others.Done()
			}
			err := planner.Allreduce(ctx, c, buf, buf, tasks.Max)
			if c.Rank() == 0 && err == nil {
				others.Wait() // in no call meanwhile
				err = planner.Barrier(ctx, c)
			}
			if !errors.Is(err, planner.ErrMismatch) || !strings.Contains(err.Error(), " 0 i32") || !strings.Contains(err.Error(), " 10 i32") {
				return fmt.Errorf("error %v, want a mismatch with both requests", err)
			}
			return nil
		})
	}
}

// A rank that has done its part leaves while another one has not come yet, and the
// third is even in the next call: only that one fails.
func TestProcessesLeaveBetweenCallsOfOthers(t *testing.T) {
	const leaver = 2
	for _, perNode := range []int{1, 3} {
		left := make(chan struct{}) // closed when the leaver has left
		processes(t, 3, perNode, &planner.Options{Plan: "shape=flat,fs=64KiB,i=adapt/chain,s=adapt/chain"}, func(ctx context.Context, world *planner.Comm) error {
			c, err := world.Split(ctx, 0, 0)
			if err != nil {
				return err
			}
			buf := make([]int32, 30_000)
			for i := range buf {
				buf[i] = int32(c.Rank())
			}
			if c.Rank() == 1 {
				<-left
			}
			first, err := planner.PrepareBcast(ctx, c, buf, leaver)
			if err != nil {
				return err
			}
			pending, err := first.Start(ctx)
			if err != nil {
				return err
			}
			if c.Rank() == leaver {
				defer close(left)
				return errors.Join(pending.Wait(ctx), c.Close())
			}
			<-left
			next := make(chan error, 1)
			other := make([]int64, 10_000)
			go func() { next <- planner.Allreduce(ctx, c, other, other, tasks.Sum) }() // received from below
			err = pending.Wait(ctx)
			if err := blames(<-next, leaver); err != nil {
				return fmt.Errorf("the next call: %w", err)
			}
			if i := slices.IndexFunc(buf, func(v int32) bool { return v != leaver }); err == nil && i >= 0 {
				err = fmt.Errorf("element %d is %d", i, buf[i])
			}
			return err
		})
	}
}

// A rank leaves: calls that need it fail with its name, others go on. Nobody hangs,
// whether there was a connection to it or not.
func TestProcessesLeaveEarly(t *testing.T) {
	comms := joinProcesses(t, 5, 2, nil)
	const leaver = 4
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		others, err := c.Split(ctx, c.Rank()/leaver, 0)
		if err != nil {
			return err
		}
		if c.Rank() == leaver {
			return c.Close()
		}
		for range 100 {
			if err := sum(ctx, others); err != nil {
				return err
			}
		}
		buf := make([]byte, 10)
		if _, err := planner.Recv(ctx, c, leaver, 1, buf); blames(err, leaver) != nil {
			return fmt.Errorf("receive: %w", blames(err, leaver))
		}
		if err := sum(ctx, others); err != nil {
			return err
		}
		if err := blames(sum(ctx, c), leaver); err != nil {
			return err
		}
		if err := sum(ctx, others); err != nil {
			return fmt.Errorf("the others' communicator: %w", err)
		}
		return c.Close()
	}))
}

// Disjoint, overlapping and reordered communicators, all in use at once.
func TestProcessesSplit(t *testing.T) {
	const n = 6
	processes(t, n, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		odd, err := c.Split(ctx, c.Rank()%2, -c.Rank())
		if err != nil {
			return err
		}
		if odd.Size() != n/2 || odd.Rank() != (n-1-c.Rank())/2 {
			return fmt.Errorf("rank %d of %d among the odd or even", odd.Rank(), odd.Size())
		}
		color := planner.NoColor
		if c.Rank() >= 2 {
			color = 7
		}
		most, err := c.Split(ctx, color, 0)
		if err != nil || (most == nil) != (c.Rank() < 2) {
			return fmt.Errorf("without color: %v, %w", most, err)
		}
		dup, err := odd.Dup(ctx)
		if err != nil {
			return err
		}
		all := []*planner.Comm{c, odd, dup}
		if most != nil {
			all = append(all, most)
		}
		var pending []*planner.Pending
		var bufs [][]int64
		for i, on := range all {
			buf := make([]int64, 2000)
			for j := range buf {
				buf[j] = int64(i + 1)
			}
			col, err := planner.PrepareAllreduce(ctx, on, buf, buf, tasks.Sum)
			if err != nil {
				return err
			}
			p, err := col.Start(ctx)
			if err != nil {
				return err
			}
			pending, bufs = append(pending, p), append(bufs, buf)
		}
		for i := range slices.Backward(all) {
			if err := pending[i].Wait(ctx); err != nil {
				return err
			}
			if want := int64((i + 1) * all[i].Size()); bufs[i][1999] != want {
				return fmt.Errorf("communicator %d: %d, want %d", i, bufs[i][1999], want)
			}
		}
		return nil
	})
}

// A deadline breaks its communicator, and no other, because of the rank that has not come.
func TestProcessesSplitFailure(t *testing.T) {
	comms := joinProcesses(t, 6, 2, nil)
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		half, err := c.Split(ctx, c.Rank()/3, 0)
		if err != nil {
			return err
		}
		why := errors.New("enough")
		if c.Rank() == 1 {
			col, err := planner.PrepareBarrier(ctx, half)
			if err != nil {
				return err
			}
			short, stop := context.WithTimeoutCause(ctx, 20*time.Millisecond, why)
			defer stop()
			if err := col.Run(short); !errors.Is(err, why) {
				return fmt.Errorf("the rank without time: %w", err)
			}
		}
		if c.Rank() == 0 {
			return blames(planner.Barrier(ctx, half), 2) // which has not come
		}
		if c.Rank() >= 3 {
			for range 50 {
				if err := sum(ctx, half); err != nil {
					return fmt.Errorf("the other half: %w", err)
				}
			}
		}
		return nil
	}))
	noErrors(t, each(comms, sum)) // the world is whole
	closeAll(t, comms)
}

// What rank 0 forces holds for all; a plan that can't be is an error on all.
func TestProcessesForcedPlan(t *testing.T) {
	t.Setenv(env.Plan, "allreduce:shape=flat,fs=4KiB,w=2,s=adapt/chain,i=adapt/chain")
	processes(t, 3, 2, nil, func(_ context.Context, c *planner.Comm) error {
		col, err := planner.PrepareAllreduce(t.Context(), c, make([]int, 10), make([]int, 10), tasks.Sum)
		if err != nil {
			return err
		}
		if got := col.Plan().String(); !strings.Contains(got, "shape=flat") || !strings.Contains(got, "4KiB") {
			return fmt.Errorf("plan %s", got)
		}
		return nil
	})
}

func TestJoinErrors(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, err = raw.JoinAs(ctx, join.Config{Rank: 0, Size: 2, Rendezvous: []string{l.Addr().String()}, Listener: l, Secret: "s"}, nil)
	wantError(t, "alone of two", err, "rank 1")
	wantError(t, "rank 5 of 2", second(raw.JoinAs(t.Context(), join.Config{Rank: 5, Size: 2}, nil)), "rank 5")
	t.Setenv("TIERFLOW_RANK", "x")
	wantError(t, "a rank that is no number", second(planner.Join(t.Context(), nil)), "TIERFLOW_RANK")
}

// A rank that can't enter the job tells the others why. Else they could only say that it has left.
func TestProcessesHearWhyOneLeaves(t *testing.T) {
	const culprit = 2
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	errs := make([]error, 4)
	var all sync.WaitGroup
	for r := range errs {
		all.Go(func() {
			cfg := join.Config{Rank: levels.Rank(r), Size: len(errs), Rendezvous: []string{l.Addr().String()}, Secret: "a test"}
			o := &planner.Options{}
			if r == 0 {
				cfg.Listener = l
			}
			if r == culprit {
				o.Congestion = "none-of-that-name"
			}
			_, errs[r] = raw.JoinAs(ctx, cfg, o)
		})
	}
	all.Wait()
	for r, err := range errs {
		if r != culprit && (blames(err, culprit) != nil || !strings.Contains(err.Error(), "none-of-that-name")) {
			t.Errorf("rank %d: %v, want why rank %d left", r, err, culprit)
		}
	}
}

package planner_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// Bytes and their request do what elements do, once and again, and with other buffers.
func TestPrepare(t *testing.T) {
	onBothKinds(t, 2, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		send, recv, other := make([]byte, 24), make([]byte, 24), make([]byte, 24)
		for i := range 3 {
			binary.NativeEndian.PutUint64(send[8*i:], uint64(i+c.Rank()))
		}
		r := tasks.Request{Coll: tasks.Allreduce, Count: 3, Type: tasks.Int64, Op: tasks.Sum, Root: 1} // which has no root
		all, err := raw.Prepare(ctx, c, r, send, recv)
		if err != nil {
			return err
		}
		if err := errors.Join(all.Run(ctx), raw.Rebind(all, send, other), all.Run(ctx), raw.Run(ctx, c, r, send, send[:0])); err == nil || !strings.Contains(err.Error(), "buffers of 24 bytes to send and 0 to receive") {
			return fmt.Errorf("error %v, want one of buffers", err)
		}
		r.InPlace = true
		if err := raw.Run(ctx, c, r, nil, send); err != nil {
			return err
		}
		for i := range 3 {
			for _, b := range [][]byte{recv, other, send} {
				if got, want := binary.NativeEndian.Uint64(b[8*i:]), uint64(4*i+6); got != want {
					return fmt.Errorf("sum %d is %d, want %d", i, got, want)
				}
			}
		}
		return nil
	})
}

func TestPrepareRefuses(t *testing.T) {
	succeed(t, "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		b := make([]byte, 16)
		bcast := tasks.Request{Coll: tasks.Bcast, Count: 16, Type: tasks.Uint8}
		sum := tasks.Request{Coll: tasks.Allreduce, Count: 2, Type: tasks.Int32, Op: tasks.Sum}
		for _, test := range []struct {
			r          tasks.Request
			send, recv []byte
			want       string
		}{
			{tasks.Request{}, nil, nil, "can't be requested"},
			{tasks.Request{Coll: tasks.Bcast, Count: 16, Type: tasks.Uint8, Root: 2}, nil, b, "root 2: ranks are 0 to 1"},
			{bcast, nil, b[:15], "buffers of 0 bytes to send and 15 to receive"},
			{bcast, b, b, "buffers of 16 bytes to send and 16 to receive"},
			{sum, b[:8], b[4:12], "overlap"},
		} {
			if _, err := raw.Prepare(ctx, c, test.r, test.send, test.recv); err == nil || !strings.Contains(err.Error(), test.want) {
				return fmt.Errorf("%v: error %v, want %q", test.r, err, test.want)
			}
		}
		return nil
	})
}

// Ranks that know who they are make communicators without a message: the last rank of a
// communicator may be far behind.
func TestSub(t *testing.T) {
	onBothKinds(t, 2, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		id := make([]uint64, 1)
		if c.Rank() == 3 {
			var err error
			if id[0], err = raw.DrawID(c); err != nil {
				return err
			}
		}
		if err := planner.Bcast(ctx, c, id, 3); err != nil {
			return err
		}
		if c.Rank() == 1 {
			if _, err := raw.Sub(c, id[0], []int{3, 0, 2}); err == nil || !strings.Contains(err.Error(), "not among its ranks") {
				return fmt.Errorf("error %v, want that rank 1 is not among the ranks", err)
			}
			return nil
		}
		for _, bad := range [][]int{{3, 0, 4}, {3, 0, 3}} {
			if _, err := raw.Sub(c, id[0], bad); err == nil {
				return fmt.Errorf("no error for ranks %v", bad)
			}
		}
		s, err := raw.Sub(c, id[0], []int{3, 0, 2})
		if err != nil {
			return err
		}
		got := make([]int, 3)
		if err := planner.Allgather(ctx, s, []int{c.Rank()}, got); err != nil {
			return err
		}
		if fmt.Sprint(got) != "[3 0 2]" {
			return fmt.Errorf("ranks %v, want [3 0 2]", got)
		}
		return s.Close()
	})
}

// A rank that waits in a collective lets another library go on, also between processes.
func TestProgress(t *testing.T) {
	var looks atomic.Int64
	o := &planner.Options{}
	raw.SeamsOf(o).Progress = func() { looks.Add(1) }
	onBothKinds(t, 2, 1, o, func(ctx context.Context, c *planner.Comm) error {
		if c.Rank() == 0 { // it waits for what the other one's Progress does
			before := looks.Load()
			if err := clocktest.Await(ctx, func() bool { return looks.Load() >= before+1000 }); err != nil {
				return err
			}
		}
		return planner.Barrier(ctx, c)
	})
}

// More sizes in turns than were once kept are compiled once; the one used least recently
// goes first, and those that are large go sooner.
func TestProgramsKept(t *testing.T) {
	succeed(t, "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]int32, 3000)
		sum := func(n int) error { return planner.Allreduce(ctx, c, buf[:n], buf[:n], tasks.Sum) }
		for n := 1; n <= 200; n++ {
			if err := sum(n); err != nil {
				return err
			}
		}
		if c.Kept() != 200 {
			return fmt.Errorf("%d programs are kept of 200", c.Kept())
		}
		for n := 201; n <= 1500; n++ {
			if err := errors.Join(sum(n), sum(7)); err != nil {
				return err
			}
		}
		if !c.Keeps(7*4) || c.Keeps(8*4) || !c.Keeps(1500*4) || c.Kept() != 1024 {
			return fmt.Errorf("of 1024 programs that of 7 elements %v, of 8 %v, of 1500 %v, together %d", c.Keeps(7*4), c.Keeps(8*4), c.Keeps(1500*4), c.Kept())
		}
		return nil
	})
}

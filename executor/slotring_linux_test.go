package executor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/proc"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Calls of a rank take their slots from one ring in turn, and two that are on their way at
// once have slots of their own. Calls with few bytes of slots, or many, leave the ring alone.
func TestSlotsInTurn(t *testing.T) {
	for _, test := range []struct {
		count int
		plan  string
		turns bool
	}{
		{20_000, "shape=han,fs=16KiB,w=4,s=sm/slots", true},
		{500, "shape=han,fs=all,w=1,s=sm/slots", false},
		{200_000, "shape=han,fs=256KiB,w=4,s=sm/slots", false},
		{20_000, "shape=han,fs=16KiB,w=4,s=sm/rings", false},
	} {
		h, _ := parse(t, "1x2", "")
		p := openProcesses(t, h, proc.Config{}, nil)
		reverse(p.World)
		var runs [2][]*executor.Run
		var bufs [2][][]int32
		for i := range runs {
			runs[i], bufs[i] = sumsOn(t, p.World, "1x2", test.plan, executor.CommID(i), test.count)
		}
		const calls = 50
		seen := map[int]bool{}
		for call := range calls {
			succeed(t, p.World, func(ctx context.Context, r int) error {
				for i := range runs {
					me := r ^ i // ranks are numbered from the end on communicator 1
					for k := range bufs[i][me] {
						bufs[i][me][k] = int32(call + k*(1+i) + 7*me)
					}
					if err := runs[i][r].Start(ctx); err != nil {
						return err
					}
				}
				return errors.Join(runs[0][r].Wait(ctx), runs[1][r].Wait(ctx))
			})
			for i := range runs {
				if err := checkSums(bufs[i], int32(2*call+7), 2*(1+i)); err != nil {
					t.Fatalf("%s, call %d on communicator %d: %v", test.plan, call, i, err)
				}
			}
			size, next, busy := executor.SlotRing(p.World, 0)
			if seen[next] = true; busy || next > size {
				t.Fatalf("%s: after call %d the ring of %d bytes is at %d, busy %v", test.plan, call, size, next, busy)
			}
		}
		if test.turns != (len(seen) > 8) || !test.turns && !seen[0] {
			t.Errorf("%s: slots of %d calls began at %v", test.plan, calls, seen)
		}
		closeProcesses(t, p)
	}
}

// checkSums checks that element k of all buffers is first and k times step.
func checkSums(bufs [][]int32, first int32, step int) error {
	for r := range bufs {
		for k, got := range bufs[r] {
			if want := first + int32(k*step); got != want {
				return fmt.Errorf("rank %d, element %d: %d, want %d", r, k, got, want)
			}
		}
	}
	return nil
}

// A run that borrows shared memory has none between its calls.
func TestBorrowedBetweenCalls(t *testing.T) {
	h, plan := parse(t, "1x2", "shape=han,fs=256KiB,w=4,s=sm/slots")
	p := openProcesses(t, h, proc.Config{}, nil)
	defer closeProcesses(t, p)
	runs := make([]*executor.Run, 2)
	for r := range runs {
		b, err := job{p.World, h, tasks.Request{Coll: tasks.Bcast, Count: 200_000, Type: tasks.Int32}, plan}.compile(levels.Rank(r))
		if err != nil {
			t.Fatal(err)
		}
		b.Recv, b.Borrows = make([]byte, 800_000), true
		if runs[r], err = p.Endpoint(levels.Rank(r)).Comm(0).Bind(b); err != nil {
			t.Fatal(err)
		}
	}
	for calls := range 3 {
		if n := p.Endpoint(0).SpareLoans(); n != 1 {
			t.Errorf("after %d calls the root has %d pieces to spare, want one", calls, n)
		}
		do(t, p.World, runs)
	}
}

package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/internal/faulty"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Dangers, their protections, and the test that fails without each:
//
//	danger                          protection                                    test
//	torn single copy                isIntact in Run.doInChunks                    TestTornCopy
//	message before its run          early in Comm.deliverToRun, deliverEarly      TestFarAhead
//	message before its receive      keep in Comm.deliverTransfer                  TestMessagesArriveInOrder
//	too much sent early             Charge in Run.sendStep                        TestBudgetIsCharged
//	budget lost                     traffic.consume                               TestBudgetComesBack
//	budget invented                 Refund in Endpoint.deliverMessage             TestHostilePeerRepeats
//	waiting for credit in vain      Run.resumeSends                               TestBudgetLetsGo
//	credit for what has left        late in Run.findStep and Comm.deliverToRun    TestBudgetLetsGo
//	slots reused too early          the program's last awaits                     TestSlotsAreReused
//	sequence numbers wrap           differences in callOrder.hasEnded, failIfLeft TestSequenceWraps
//	cancelled in the middle         markBroken before endBroken in World.failHere TestNothingIsWrittenAfterReturn, by chance
//	                                Link.Forget                                   TestTCPLinkForget, TestShmLinkForget
//	large send when it breaks       puts.forget                                   TestBreakDuringLargeSend
//	buffer reused after a failure   the copy in wire.DropBulk                     TestFailedCallSendsWhatItMeant
//	budget dropped with a payload   the refund in wire.DropBulk                   TestShmLinkForget, TestTCPLinkForgetKeepsBudgets
//	communicators in other orders   comm in callOrder.findRun                     TestOppositeOrders
//	message told twice              running.canHear, inTicket in deliverMessage   TestHostilePeerRepeats, TestFaultsRepeat
//	payload cut short               Message.Check, Parts.Follow                   TestTCPLinkProtocol, TestPartsFollow
//	connection that just ends       tcpReader.ended                               TestTCPLinkEnds

// sumsOn binds an allreduce of n numbers on a communicator.
func sumsOn(t failer, w *executor.World, topo, plan string, comm executor.CommID, n int) (runs []*executor.Run, bufs [][]int32) {
	t.Helper()
	h, p := parse(t, topo, plan)
	bufs = numbers(h.Size(), n)
	r := tasks.Request{Coll: tasks.Allreduce, Count: int64(n), Type: tasks.Int32, Op: tasks.Sum, InPlace: true}
	return job{w, h, r, p}.bindOn(t, comm, nil, raws(bufs)), bufs
}

const nodes = "shape=han,fs=all,w=1,i=adapt/chain"

// A root that nobody listens to sends no more than its budget allows.
func TestBudgetIsCharged(t *testing.T) {
	const allowed = 3
	h, p := parse(t, "2x1", nodes)
	inBubble(t, 2, executor.Config{EagerBudget: allowed * (12 + 64)}, func(t *testing.T, w *executor.World) {
		runs := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32}, p}.bind(t, nil, raws(numbers(2, 3)))
		root := w.Endpoint(0)
		succeed(t, w, func(ctx context.Context, r int) error {
			if r == 1 {
				synctest.Wait() // the root can't go on
				if c := root.Comm(0).Counters(); c.Eager != allowed || c.Runs != allowed+1 {
					return fmt.Errorf("the root has sent %d messages in %d runs that nobody took, want %d", c.Eager, c.Runs, allowed)
				}
			}
			for range 10 {
				if err := runs[r].Do(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Budget comes back as messages are taken: two ranks that answer each other never
// ask for credit.
func TestBudgetComesBack(t *testing.T) {
	w := newWorld(t, 2, executor.Config{EagerBudget: 4 * (12 + 64)})
	there, back := crossed(t, w, 0), crossed(t, w, 1)
	for range 30 {
		do(t, w, there)
		do(t, w, back)
	}
	for r := range levels.Rank(2) {
		if c := w.Endpoint(r).Comm(0).Counters(); c.Eager != 30 || c.Direct != 0 {
			t.Errorf("rank %d: %d messages sent at once, %d against credit, want 30 and 0", r, c.Eager, c.Direct)
		}
	}
}

// The slots of a run are used again and again, however late the readers are.
func TestSlotsAreReused(t *testing.T) {
	for _, plan := range []string{"shape=han,fs=256B,w=2,s=sm", "shape=han,fs=256B,w=2,s=solo"} {
		w := newWorld(t, 4, executor.Config{})
		defer executor.Disturb(w, faulty.Faults{Seed: 1, Hold: true}).Wait()
		runs, bufs := sumsOn(t, w, "1x4", plan, 0, 1000)
		for i := range 20 {
			succeed(t, w, func(ctx context.Context, r int) error {
				copy(bufs[r], numbers(4+i, 1000)[r+i])
				return runs[r].Do(ctx)
			})
			for k := range bufs[0] {
				want := int32((k + 1) * (16 + 8*i)) // four numbers in a row from 2i+1 on
				for r := range bufs {
					if bufs[r][k] != want {
						t.Fatalf("%s, run %d, rank %d, element %d: %d, want %d", plan, i, r, k, bufs[r][k], want)
					}
				}
			}
		}
	}
}

// Calls, messages and departures are in order also where their numbers wrap.
func TestSequenceWraps(t *testing.T) {
	h, p := parse(t, "2x1", nodes)
	for _, before := range []uint32{0, 1, 5, 200} {
		w := newWorld(t, 2, executor.Config{})
		executor.Advance(w, math.MaxUint32-before)
		bufs := raws(numbers(2, 3))
		runs := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32}, p}.bind(t, nil, bufs)
		left := make(chan bool)
		succeed(t, w, func(ctx context.Context, r int) error {
			if r == 1 {
				<-left // the root is done with all of it, and gone
			}
			for i := range 300 {
				if err := runs[r].Do(ctx); err != nil {
					return fmt.Errorf("call %d: %w", i, err)
				}
				if r == 0 {
					if err := send(ctx, w, 0, 1, 0, message(2, i)); err != nil {
						return err
					}
				}
			}
			if r == 0 {
				defer close(left)
				return w.Endpoint(0).Comm(0).Close()
			}
			for i := range 300 {
				buf := make([]byte, 2)
				if _, err := recv(ctx, w, 1, 0, 0, buf); err != nil || buf[0] != message(2, i)[0] {
					return fmt.Errorf("message %d is %x: %w", i, buf, err)
				}
			}
			return nil
		})
		if err := runs[1].Do(t.Context()); !errors.Is(err, executor.ErrClosed) {
			t.Errorf("%d before the wrap: a call without the root: %v, want %v", before, err, executor.ErrClosed)
		}
	}
}

// Two ranks start calls on two communicators in opposite orders.
func TestOppositeOrders(t *testing.T) {
	w := newWorld(t, 2, executor.Config{EagerBudget: 300})
	reverse(w)
	var runs [2][]*executor.Run
	var bufs [2][][]int32
	for comm, n := range []int{3, 30_000} {
		runs[comm], bufs[comm] = sumsOn(t, w, "2x1", "shape=han,fs=16KiB,w=2,i=adapt/chain", executor.CommID(comm), n)
	}
	for range 20 {
		for _, of := range bufs {
			for r := range of {
				copy(of[r], numbers(2, len(of[r]))[r])
			}
		}
		succeed(t, w, func(ctx context.Context, r int) error {
			first, then := runs[r][r], runs[1-r][r]
			if err := first.Start(ctx); err != nil {
				return err
			}
			if err := then.Do(ctx); err != nil {
				return err
			}
			return first.Wait(ctx)
		})
		for _, of := range bufs {
			for r := range of {
				check(t, r, of[r], sums(2, len(of[r])))
			}
		}
	}
}

// Sends that wait for budget leave when it comes back, before their recvs give credit;
// that comes late then, also when its sender is a pass ahead.
func TestBudgetLetsGo(t *testing.T) {
	h, p := parse(t, "2x1", "shape=flat,fs=8B,w=4,i=adapt/chain")
	w := newWorld(t, 2, executor.Config{EagerBudget: 4 * (8 + 64)})
	const n = 8 * tasks.MaxSegments
	bufs := numbers(2, n)
	want := numbers(2, n)[0]
	runs := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: n, Type: tasks.Int32}, p}.bind(t, nil, raws(bufs))
	do(t, w, runs)
	check(t, 1, bufs[1], want)
	if c := w.Endpoint(0).Comm(0).Counters(); c.Eager < 4*c.Direct {
		t.Errorf("%d messages without credit, %d with; want a fifth at most", c.Eager, c.Direct)
	}
}

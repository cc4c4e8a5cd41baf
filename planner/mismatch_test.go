package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// disagreement is a program in which ranks don't call the same: all call base, then some call odd where the others call even.
type disagreement struct {
	ranks, perNode int
	base           []tasks.Request
	even, odd      tasks.Request
	isOdd          []bool // by rank
	swapped        bool   // both call both: the odd ones in the other order
	leave          bool   // who ends well makes no further call, and closes
}

// drawDisagreement differs in root, count, operation, type, collective or order.
func drawDisagreement(draw *rand.Rand) disagreement {
	d := disagreement{ranks: 3 + draw.IntN(6), leave: draw.IntN(2) == 0}
	d.perNode = 1 + draw.IntN(d.ranks)
	for range draw.IntN(3) {
		d.base = append(d.base, drawRequest(draw, d.ranks))
	}
	for d.even = drawRequest(draw, d.ranks); d.odd.String() == d.even.String() || d.odd.Coll == 0; {
		d.odd = d.even
		switch draw.IntN(6) {
		case 0:
			d.odd.Root = levels.Rank(draw.IntN(d.ranks))
		case 1:
			d.odd.Count = 1 + draw.Int64N(2*d.even.Count+1)
		case 2:
			d.odd.Op = tasks.Max
		case 3:
			d.odd.Type = tasks.Float32
		default:
			d.odd = drawRequest(draw, d.ranks)
			d.swapped = draw.IntN(3) == 0
		}
	}
	d.isOdd = make([]bool, d.ranks)
	for range 1 + draw.IntN(d.ranks-1) {
		d.isOdd[draw.IntN(d.ranks)] = true
	}
	if !slices.Contains(d.isOdd, false) {
		d.isOdd[0] = false
	}
	return d
}

// drawRequest draws what call can call.
func drawRequest(draw *rand.Rand, ranks int) tasks.Request {
	r := tasks.Request{
		Coll: []tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce, tasks.Allgather, tasks.Gather, tasks.Barrier}[draw.IntN(6)],
	}
	if r.Coll == tasks.Barrier {
		return r
	}
	r.Count, r.Type = 1+draw.Int64N([]int64{3, 300, 20_000}[draw.IntN(3)]), tasks.Int32
	if r.Rooted() {
		r.Root = levels.Rank(draw.IntN(ranks))
	}
	if r.Reduces() {
		r.Op = tasks.Sum
	}
	return r
}

// callRequest makes the one-shot call of a request.
func callRequest[T int32 | float32](ctx context.Context, c *planner.Comm, r tasks.Request) error {
	send, all, root := make([]T, r.Count), make([]T, int(r.Count)*c.Size()), int(r.Root)
	switch r.Coll {
	case tasks.Bcast:
		return planner.Bcast(ctx, c, send, root)
	case tasks.Reduce:
		return planner.Reduce(ctx, c, send, all[:r.Count], r.Op, root)
	case tasks.Allreduce:
		return planner.Allreduce(ctx, c, send, all[:r.Count], r.Op)
	case tasks.Allgather:
		return planner.Allgather(ctx, c, send, all)
	case tasks.Gather:
		return planner.Gather(ctx, c, send, all, root)
	}
	return planner.Barrier(ctx, c)
}

// play is one rank's program. It closes its communicator.
func (d *disagreement) play(ctx context.Context, c *planner.Comm) error {
	calls := append(slices.Clone(d.base), d.even)
	switch {
	case d.isOdd[c.Rank()] && d.swapped:
		calls = append(slices.Clone(d.base), d.odd, d.even)
	case d.isOdd[c.Rank()]:
		calls = append(slices.Clone(d.base), d.odd)
	case d.swapped:
		calls = append(calls, d.odd)
	}
	if !d.leave {
		for range 40 {
			calls = append(calls, tasks.Request{Coll: tasks.Barrier})
		}
	}
	for _, r := range calls {
		do := callRequest[int32]
		if r.Type == tasks.Float32 {
			do = callRequest[float32]
		}
		if err := do(ctx, c, r); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	return c.Close()
}

// judge returns what is wrong with the error of a rank.
func (d *disagreement) judge(err error) error {
	m, ok := errors.AsType[*planner.MismatchError](err)
	switch {
	case err == nil && d.leave: // it may not have met the others
		return nil
	case !ok || !errors.Is(err, planner.ErrMismatch):
		return fmt.Errorf("no mismatch: %w", err)
	case errors.As(err, new(*planner.PeerError)) || strings.Contains(err.Error(), "failed") || strings.Contains(err.Error(), "any more"):
		return fmt.Errorf("names an innocent, or nothing: %w", err)
	case int(m.Seq) < len(d.base) || int(m.Seq) == len(d.base) && (!strings.Contains(err.Error(), d.even.String()) || !strings.Contains(err.Error(), d.odd.String())):
		return fmt.Errorf("not both requests: %w", err)
	case m.Comm != 0 || int(m.Seq) > len(d.base):
		return nil
	}
	for _, side := range []struct {
		request string
		ranks   []levels.Rank
	}{{m.Request, append(m.With, m.Rank)}, {m.PeerWants, append(m.PeerWith, m.Peer)}} {
		for _, r := range side.ranks {
			want := d.even
			if d.isOdd[r] {
				want = d.odd
			}
			if side.request != want.String() {
				return fmt.Errorf("rank %d runs %v: %w", r, want, err)
			}
		}
	}
	return nil
}

// Ranks that disagree hear both requests, and the ranks of each. None of them is said to have failed, and a
// rank that has left tells what it ran.
func TestRandomMismatches(t *testing.T) {
	seed := rand.Uint64()
	for i := range 60 {
		draw := rand.New(rand.NewPCG(seed, uint64(i)))
		d := drawDisagreement(draw)
		kind := []string{"goroutine ranks", "processes"}[i%2]
		var comms []*planner.Comm
		if i%2 == 0 {
			var err error
			if comms, err = planner.Local(fmt.Sprint(d.ranks), nil); err != nil {
				t.Fatal(err)
			}
		} else {
			comms = joinProcesses(t, d.ranks, d.perNode, nil)
		}
		for r, err := range each(comms, d.play) {
			if wrong := d.judge(err); wrong != nil {
				t.Errorf("seed %d, case %d of %s, %d ranks, %d on a node, after %v: %v and %v of %v, swapped %v, leaves %v: rank %d: %v",
					seed, i, kind, d.ranks, d.perNode, d.base, d.even, d.odd, d.isOdd, d.swapped, d.leave, r, wrong)
			}
		}
	}
}

// What a rank ran is known hundreds of calls later, and when it has left since.
func TestMismatchOfLongAgo(t *testing.T) {
	const calls = 300
	first := tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Int32, Root: 1}
	for _, perNode := range []int{0, 1, 2} {
		for _, leaves := range []bool{false, true} {
			var comms []*planner.Comm
			if perNode > 0 {
				comms = joinProcesses(t, 2, perNode, nil)
			} else {
				var err error
				if comms, err = planner.Local("2", nil); err != nil {
					t.Fatal(err)
				}
			}
			ahead := make(chan struct{})
			errs := each(comms, func(ctx context.Context, c *planner.Comm) error {
				if c.Rank() == 0 {
					<-ahead
					err := planner.Bcast(ctx, c, make([]int32, 2), 1)
					return errors.Join(err, c.Close())
				}
				err := callRequest[int32](ctx, c, first)
				for i := 0; i < calls && err == nil; i++ {
					err = planner.Bcast(ctx, c, make([]int32, 1), 1)
				}
				if leaves {
					time.AfterFunc(100*time.Millisecond, func() { close(ahead) }) // Close waits for the other one
				} else {
					close(ahead)
					err = errors.Join(err, planner.Barrier(ctx, c))
				}
				return errors.Join(err, c.Close())
			})
			m, ok := errors.AsType[*planner.MismatchError](errs[0])
			if !ok || m.Rank != 0 || m.PeerWants != first.String() {
				t.Errorf("%d on a node, leaves %v: %v, want a mismatch with %v", perNode, leaves, errs[0], first)
			}
			if !leaves && !errors.Is(errs[1], planner.ErrMismatch) {
				t.Errorf("%d on a node: the rank ahead: %v", perNode, errs[1])
			}
		}
	}
}

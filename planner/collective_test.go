package planner_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/half"
)

type celsius float64

// reduced is what Allreduce of a slice per rank gives on the last of three ranks.
func reduced[T any](t *testing.T, op tasks.Op, in ...[]T) []T {
	t.Helper()
	var got []T
	succeed(t, "a:2,b:1", nil, func(ctx context.Context, c *planner.Comm) error {
		out := make([]T, len(in[0]))
		if err := planner.AllreduceNow(ctx, c, in[c.Rank()], out, op); err != nil {
			return err
		}
		if c.Rank() == 2 {
			got = out
		}
		return nil
	})
	return got
}

func same[T any](t *testing.T, what string, got, want []T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func TestElementTypes(t *testing.T) {
	same(t, "named floats", reduced(t, tasks.Sum, []celsius{1, 2}, []celsius{10, 20}, []celsius{100, 200}), []celsius{111, 222})
	same(t, "an average", reduced(t, tasks.Average, []float32{1, 0}, []float32{2, 0}, []float32{6, -3}), []float32{3, -1})
	same(t, "bytes wrap", reduced(t, tasks.Sum, []uint8{200}, []uint8{100}, []uint8{1}), []uint8{45})
	same(t, "complex numbers", reduced(t, tasks.Prod, []complex128{2i}, []complex128{3}, []complex128{1i}), []complex128{-6})
	same(t, "half floats", reduced(t, tasks.Sum,
		[]half.Float16{half.NewFloat16(1.5)}, []half.Float16{half.NewFloat16(2)}, []half.Float16{half.NewFloat16(-4)}),
		[]half.Float16{half.NewFloat16(-0.5)})
	same(t, "brain floats, averaged", reduced(t, tasks.Average,
		[]half.BFloat16{half.NewBFloat16(3)}, []half.BFloat16{half.NewBFloat16(6)}, []half.BFloat16{half.NewBFloat16(0)}),
		[]half.BFloat16{half.NewBFloat16(3)})
	same(t, "the first of the largest", reduced(t, tasks.MaxLoc,
		[]tasks.Loc[int32]{{Value: 4, Index: 9}}, []tasks.Loc[int32]{{Value: 5, Index: 8}}, []tasks.Loc[int32]{{Value: 5, Index: 7}}),
		[]tasks.Loc[int32]{{Value: 5, Index: 7}})
	words := tasks.UserOp("subtract", false, func(a, b int64) int64 { return 10*a + b })
	same(t, "an operation that keeps order", reduced(t, words, []int64{1}, []int64{2}, []int64{3}), []int64{123})
}

// On ranks that are not numbered node by node order is kept by a flat plan.
func TestOrderIsKeptOnAnyLayout(t *testing.T) {
	digits := tasks.UserOp("digits", false, func(a, b uint64) uint64 {
		shift := uint64(10)
		for shift <= b {
			shift *= 10
		}
		return a*shift + b
	})
	succeed(t, "2x3/rr", nil, func(ctx context.Context, c *planner.Comm) error {
		sum := []uint64{uint64(c.Rank() + 1)}
		if err := planner.AllreduceNow(ctx, c, sum, sum, digits); err != nil {
			return err
		}
		if sum[0] != 123456 {
			t.Errorf("rank %d has %d", c.Rank(), sum[0])
		}
		return nil
	})
}

// Whichever rank is the root, the built-in rule finds a plan that keeps order, in
// one segment and in several.
func TestReduceKeepsOrderForEveryRoot(t *testing.T) {
	first := tasks.UserOp("first", false, func(a, _ int32) int32 { return a })
	for _, topo := range []string{"1", "5", "3x2", "2x3/rr", "a:3,b:1,c:2", "2x2x2"} {
		succeed(t, topo, nil, func(ctx context.Context, c *planner.Comm) error {
			for _, n := range []int{0, 3, 50_000} {
				send, recv := make([]int32, n), make([]int32, n)
				for root := range c.Size() {
					for i := range send {
						send[i], recv[i] = int32(100*i+c.Rank()), -1
					}
					to := recv
					switch {
					case c.Rank() != root:
						to = nil
					case root%2 == 1: // in place
						copy(recv, send)
						if err := planner.ReduceNow(ctx, c, recv, recv, first, root); err != nil {
							return err
						}
						to = nil
					}
					if c.Rank() != root || root%2 == 0 {
						if err := planner.ReduceNow(ctx, c, send, to, first, root); err != nil {
							return err
						}
					}
					for i, got := range recv {
						if want := int32(100 * i); c.Rank() == root && got != want || c.Rank() != root && got != -1 {
							return fmt.Errorf("%s: root %d, rank %d: element %d of %d is %d", topo, root, c.Rank(), i, n, got)
						}
					}
				}
			}
			return nil
		})
	}
}

// An average is divided where the result is, and more passes than one graph holds
// keep partial results apart.
func TestReduceAverageInPasses(t *testing.T) {
	succeed(t, "2x2", &planner.Options{Plan: "fs=8,w=2"}, func(ctx context.Context, c *planner.Comm) error {
		send := make([]float64, 2500)
		for i := range send {
			send[i] = float64(i + 2*c.Rank())
		}
		var recv []float64
		if c.Rank() == 3 {
			recv = make([]float64, len(send))
		}
		mean, err := planner.Reduce(c, send, recv, tasks.Average, 3)
		if err != nil {
			return err
		}
		for range 2 {
			if err := mean.Run(ctx); err != nil {
				return err
			}
			for i, got := range recv {
				if got != float64(i+3) {
					return fmt.Errorf("element %d is %v", i, got)
				}
			}
		}
		return nil
	})
}

// Blocks come to their places on all layouts, apart and in place, equal and not, in
// one pass and in several, flat and through levels.
func TestBlocks(t *testing.T) {
	topologies := []string{"a:3,b:1,c:2", "2x2x2", "1", "5", "3x2", "4x2/rr"}
	if testing.Short() {
		topologies = topologies[:2]
	}
	for _, topo := range topologies {
		for _, plan := range []string{"", "shape=flat", "fs=8,w=2", "shape=han-lockstep,fs=64"} {
			succeed(t, topo, &planner.Options{Plan: plan}, func(ctx context.Context, c *planner.Comm) error {
				for _, r := range blockRequests(c.Size()) {
					if err := runCase[float64](ctx, c, r); err != nil {
						return fmt.Errorf("%s under %q: %w", topo, plan, err)
					}
				}
				return nil
			})
		}
	}
}

// blockRequests lists requests of all collectives with blocks.
func blockRequests(size int) (all []tasks.Request) {
	many := 1030 // in segments of one element more than one pass
	if size > 6 {
		many = 130 // where that would take long
	}
	for _, n := range []int{0, 1, 7, many} {
		for _, coll := range tasks.Requestable() {
			r := tasks.Request{Coll: coll, Count: int64(n), Type: tasks.Float64, Root: levels.Rank(size / 2)}
			if !r.Blocks() {
				continue
			}
			if coll == tasks.Alltoall {
				r.Count = int64(min(n, 130)) // each rank has a block for each other one: passes are as many sooner
			}
			if r.Reduces() {
				r.Op = tasks.Sum
			}
			for _, r.InPlace = range []bool{false, true} {
				all = append(all, r)
				if n == 7 && (coll == tasks.Allgather || coll == tasks.ReduceScatter || coll == tasks.Alltoall) { // never in passes
					all = append(all, differing(r, size))
				}
			}
		}
	}
	return all
}

// differing gives every third rank none of r's count, the next half of it and the
// next all.
func differing(r tasks.Request, size int) tasks.Request {
	if r.Coll == tasks.Alltoall {
		return differingByPair(r, size)
	}
	counts := make([]int, size)
	for i := range counts {
		counts[i] = (i + 1) % 3 * int(r.Count) / 2
	}
	all, err := tasks.NewCounts(counts)
	if err != nil {
		panic(err)
	}
	if r.Count = all.Max(); r.Count > 0 {
		r.Counts = all
	}
	return r
}

// differingByPair does so with pairs of ranks, both ways.
func differingByPair(r tasks.Request, size int) tasks.Request {
	rows := make([][]int, size)
	for from := range rows {
		for to := range size {
			rows[from] = append(rows[from], (from+to+1)%3*int(r.Count)/2)
		}
	}
	var err error
	if r.Matrix, err = tasks.NewMatrix(rows); err != nil {
		panic(err)
	}
	if r.Count = r.Matrix.Max(); r.Count == 0 {
		r.Matrix = tasks.Matrix{}
	}
	return r
}

// One-shot calls of blocks that differ are kept apart by their counts, and each rank
// may work in place or not as it likes.
func TestOneShotCounts(t *testing.T) {
	succeed(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		for round := range 4 {
			for _, counts := range [][]int{{3, 0, 1, 2}, {0, 3, 1, 2}, {0, 0, 0, 0}, {2, 2, 2, 2}} {
				if err := oneShots(ctx, c, counts, (c.Rank()+round)%2 == 0); err != nil {
					return fmt.Errorf("counts %v: %w", counts, err)
				}
			}
		}
		return nil
	})
}

// oneShots gathers and reduces blocks in which each element is its place.
func oneShots(ctx context.Context, c *planner.Comm, counts []int, inPlace bool) error {
	before, n, sum := 0, counts[c.Rank()], 0
	for rank, k := range counts {
		if sum += k; rank < c.Rank() {
			before += k
		}
	}
	places := make([]int, sum)
	for i := range places {
		places[i] = i
	}
	all := make([]int, sum)
	mine := all[before:][:n]
	if !inPlace {
		mine = make([]int, n)
	}
	copy(mine, places[before:])
	if err := planner.AllgathervNow(ctx, c, mine, all, counts); err != nil {
		return err
	}
	if diff := cmp.Diff(places, all); diff != "" {
		return fmt.Errorf("rank %d: allgather: %s", c.Rank(), diff)
	}
	for root := range counts {
		if err := rootedShots(ctx, c, counts, root, places, before, inPlace); err != nil {
			return err
		}
	}
	send := slices.Clone(places)
	mine = send[:n]
	if !inPlace {
		mine = make([]int, n)
	}
	if err := planner.ReduceScattervNow(ctx, c, send, mine, counts, tasks.Sum); err != nil {
		return err
	}
	for i, got := range mine {
		if want := c.Size() * (before + i); got != want {
			return fmt.Errorf("rank %d: reducescatter: element %d is %d, want %d", c.Rank(), i, got, want)
		}
	}
	return nil
}

// rootedShots gathers places at a root and scatters them from there.
func rootedShots(ctx context.Context, c *planner.Comm, counts []int, root int, places []int, before int, inPlace bool) error {
	n := counts[c.Rank()]
	own := places[before:][:n]
	send, recv := slices.Clone(own), []int(nil)
	if c.Rank() == root {
		if recv = make([]int, len(places)); inPlace {
			send = recv[before:][:n]
			copy(send, own)
		}
	}
	if err := planner.GathervNow(ctx, c, send, recv, counts, root); err != nil {
		return err
	}
	if c.Rank() == root && !slices.Equal(recv, places) {
		return fmt.Errorf("root %d: gather: %v, want %v", root, recv, places)
	}
	send, recv = nil, make([]int, n)
	if c.Rank() == root {
		if send = slices.Clone(places); inPlace {
			recv = send[before:][:n]
		}
	}
	if err := planner.ScattervNow(ctx, c, send, recv, counts, root); err != nil {
		return err
	}
	if !slices.Equal(recv, own) {
		return fmt.Errorf("rank %d: scatter from %d: %v, want %v", c.Rank(), root, recv, own)
	}
	return nil
}

// A forced plan that can't be is an error on every rank, which lists the possible
// algorithms: never another one in its place.
func TestForcedPlansThatCantBe(t *testing.T) {
	first := tasks.UserOp("first", false, func(a, _ int32) int32 { return a })
	for plan, want := range map[string]string{
		"iag=adapt/chain":          "for allgather there is adapt/linear, adapt/ring, nbc/linear, nbc/recdoubling, nbc/ring, nbc/neighbor, nbc/bruck",
		"iag=nbc/recdoubling":      "an allgather or reducescatter only in groups of 1, 2, 4, 8, … ranks",
		"iag=sm":                   "sm works between ranks that share memory",
		"reduce:i=adapt/binomial":  "a non-commutative operation only when the leader is the group's lowest rank",
		"reduce:shape=flat,i=solo": "solo works between ranks that share memory",
	} {
		succeed(t, "3x2", &planner.Options{Plan: plan}, func(_ context.Context, c *planner.Comm) error {
			buf, all := make([]int32, 1), make([]int32, c.Size())
			err := second(planner.Allgather(c, buf, all))
			if strings.HasPrefix(plan, "reduce:") {
				err = second(planner.Reduce(c, buf, make([]int32, 1), first, 3))
			}
			if !errors.Is(err, submodules.ErrUnsupported) || !strings.Contains(err.Error(), want) {
				t.Errorf("plan %s, rank %d: got error %v, want %q in it", plan, c.Rank(), err, want)
			}
			return nil
		})
	}
}

// A plan that is forced on allreduce, and can't do the one that Split exchanges colors with, is none of Split's business.
func TestSplitDespiteForcedPlan(t *testing.T) {
	o := &planner.Options{Plan: "allreduce:shape=rsag,iag=nbc/recdoubling"}
	succeed(t, "3x2", o, func(ctx context.Context, c *planner.Comm) error {
		one := []int32{1}
		if err := planner.AllreduceNow(ctx, c, one, one, tasks.Sum); !errors.Is(err, submodules.ErrUnsupported) {
			t.Errorf("rank %d: got error %v from the allreduce itself, want %v", c.Rank(), err, submodules.ErrUnsupported)
		}
		d, err := c.Split(ctx, c.Rank()/4, 0)
		if err != nil {
			return err
		}
		defer d.Close()
		if want := 4 - 2*(c.Rank()/4); d.Size() != want {
			t.Errorf("rank %d: split has %d ranks, want %d", c.Rank(), d.Size(), want)
		}
		return nil
	})
}

func TestRequestsThatCantBe(t *testing.T) {
	succeed(t, "1x2", nil, func(_ context.Context, c *planner.Comm) error {
		buf := make([]int32, 10)
		for want, err := range map[string]error{
			"bcast: type struct {} can't be an element":                             second(planner.Bcast(c, []struct{}{{}}, 0)),
			"bcast: root 2: ranks are 0 to 1":                                       second(planner.Bcast(c, buf, 2)),
			"root -1: ranks are 0 to 1":                                             second(planner.Bcast(c, buf, -1)),
			"10 elements to send, 3 to receive":                                     second(planner.Allreduce(c, buf, buf[:3], tasks.Sum)),
			"send and receive buffers overlap in part":                              second(planner.Allreduce(c, buf[:6], buf[4:], tasks.Sum)),
			"reduce: root 7: ranks are 0 to 1":                                      second(planner.Reduce(c, buf, buf, tasks.Sum, 7)),
			"10 elements to send, 10 to receive; it must be 20":                     second(planner.Allgather(c, buf, buf)),
			"10 elements to send, 4 to receive; it must be 8 to send":               second(planner.ReduceScatter(c, buf, buf[:4], tasks.Sum)),
			"allgather: count -1 of rank 1: counts are not negative":                second(planner.Allgatherv(c, buf[:5], buf, []int{5, -1})),
			"reducescatter: 3 counts for 2 ranks":                                   second(planner.ReduceScatterv(c, buf, buf[:5], []int{5, 5, 0}, tasks.Sum)),
			"1 elements to send, 10 to receive; with counts 0+0 it must be 0 and 0": second(planner.Allgatherv(c, buf[:1], buf, []int{0, 0})),
			"allgather: 0 counts for 2 ranks":                                       second(planner.Allgatherv(c, buf[:5], buf, nil)),
			"1 elements to send, 10 to receive; with counts 4+4 it must be 4 and 8": second(planner.Allgatherv(c, buf[:1], buf, []int{4, 4})),
			"with counts 5+5 it must be 10 and 5":                                   second(planner.ReduceScatterv(c, buf, buf, []int{5, 5}, tasks.Sum)),
			"allgather: send and receive buffers overlap in part":                   second(planner.Allgatherv(c, buf[2:6], buf[:8], []int{4, 4})),
			"gather: 1 counts for 2 ranks":                                          second(planner.Gatherv(c, buf[:5], buf, []int{5}, 0)),
			"scatter: root 3: ranks are 0 to 1":                                     second(planner.Scatterv(c, buf, buf[:5], []int{5, 5}, 3)),
			"gather: 3 elements":                                                    second(planner.Gatherv(c, buf[:3], nil, []int{4, 4}, 1-c.Rank())),
			"scatter: 3 elements; with counts 4+4 it must be 4":                     second(planner.Scatterv(c, nil, buf[:3], []int{4, 4}, 1-c.Rank())),
			"5 elements to send, 9 to receive; with counts 5+5 it must be 5 and 10": second(planner.Gatherv(c, buf[:5], buf[:9], []int{5, 5}, c.Rank())),
			"gather: send and receive buffers overlap in part":                      second(planner.Gatherv(c, buf[1:5], buf[:8], []int{4, 4}, c.Rank())),
			"scatter: 1 elements; with counts 0+0 it must be 0":                     second(planner.Scatterv(c, nil, buf[:1], []int{0, 0}, 1-c.Rank())),
			"reducescatter: send and receive buffers overlap in part":               second(planner.ReduceScatter(c, buf, buf[5-c.Rank():][:5], tasks.Sum)),
			"scatter: root 2: ranks are 0 to 1":                                     second(planner.Scatter(c, nil, buf, 2)),
			"is not a reduction":                                                    second(planner.Allreduce(c, buf, buf, tasks.Op{})),
			"minloc is not defined on i32":                                          second(planner.Allreduce(c, buf, buf, tasks.MinLoc)),
			"operation wide combines i64, the buffer holds i32":                     second(planner.Allreduce(c, buf, buf, tasks.UserOp("wide", true, func(a, _ int64) int64 { return a }))),
			"tag -1 is not between 0 and":                                           second(planner.StartSend(t.Context(), c, 1, -1, buf)),
			"rank 5: ranks are 0 to 1":                                              second(planner.StartRecv(t.Context(), c, 5, 0, buf)),
			"type string can't be an element: it is no use to another rank; ":       second(planner.Recv(t.Context(), c, 1, 0, []string{""})),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		return nil
	})
}

func second[T any](_ T, err error) error { return err }

// Only the root of a scatter has something to say about what it sends.
func TestScattersThatCantBe(t *testing.T) {
	succeed(t, "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		buf := make([]int32, 10)
		for want, err := range map[string]error{
			"10 elements to send, 4 to receive; it must be 8 to send, a block for each of 2 ranks": second(planner.Scatter(c, buf, buf[:4], 0)),
			"scatter: send and receive buffers overlap in part":                                    second(planner.Scatter(c, buf, buf[2:][:5], 0)),
		} {
			if c.Rank() == 0 && (err == nil || !strings.Contains(err.Error(), want)) || c.Rank() == 1 && err != nil {
				t.Errorf("rank %d: %v, want %q on rank 0", c.Rank(), err, want)
			}
		}
		if err := planner.AllgathervNow(ctx, c, buf, buf, []int{3}); err == nil || !strings.Contains(err.Error(), "1 counts for 2 ranks") {
			t.Errorf("one-shot: %v", err)
		}
		if err := planner.ReduceScattervNow(ctx, c, buf, buf, []int{-3, 3}, tasks.Sum); err == nil || !strings.Contains(err.Error(), "not negative") {
			t.Errorf("one-shot: %v", err)
		}
		return nil
	})
}

// An average is divided once per run, however often one waits for it.
func TestAverageAgain(t *testing.T) {
	succeed(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		in, out := []float64{8}, []float64{0}
		mean, err := planner.Allreduce(c, in, out, tasks.Average)
		if err != nil {
			return err
		}
		for range 3 {
			p, err := mean.Start(ctx)
			if err != nil {
				return err
			}
			for range 2 {
				if err := p.Wait(); err != nil {
					return err
				}
			}
			if out[0] != 8 {
				return fmt.Errorf("the mean of eights is %g", out[0])
			}
			if err := mean.Run(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestBusy(t *testing.T) {
	succeed(t, "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		all, err := planner.Barrier(c)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			p, err := all.Start(ctx)
			if err != nil {
				return err
			}
			if err := all.Run(ctx); !errors.Is(err, planner.ErrBusy) {
				t.Errorf("run while it is started: %v", err)
			}
			return p.Wait()
		}
		return all.Run(ctx)
	})
}

// Several collectives are on their way at once, and each is its own.
func TestManyStarted(t *testing.T) {
	succeed(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		const n = 20
		var pending []*planner.Pending
		bufs := make([][]int, n)
		for i := range bufs {
			bufs[i] = slices.Repeat([]int{i + c.Rank()}, 1+i*200)
			sum, err := planner.Allreduce(c, bufs[i], bufs[i], tasks.Sum)
			if err != nil {
				return err
			}
			p, err := sum.Start(ctx)
			if err != nil {
				return err
			}
			pending = append(pending, p)
		}
		for i, p := range slices.Backward(pending) {
			if err := p.Wait(); err != nil {
				return err
			}
			for _, got := range bufs[i] {
				if want := 4*i + 6; got != want {
					return fmt.Errorf("sum %d is %d, want %d", i, got, want)
				}
			}
		}
		return nil
	})
}

// One-shot calls work again and again with changing buffers and sizes, more of
// them than are kept, and don't hold on to the buffers.
func TestOneShotCalls(t *testing.T) {
	freed := make(chan bool, 10)
	succeed(t, "2x1", nil, func(ctx context.Context, c *planner.Comm) error {
		for round := range 3 {
			for n := range 100 {
				buf := slices.Repeat([]int32{int32(c.Rank() + round)}, n)
				if err := planner.AllreduceNow(ctx, c, buf, buf, tasks.Sum); err != nil {
					return err
				}
				for _, got := range buf {
					if want := int32(1 + 2*round); got != want {
						return fmt.Errorf("round %d, %d elements: %d, want %d", round, n, got, want)
					}
				}
			}
		}
		if c.Rank() == 0 {
			large := new([1 << 20]byte)
			runtime.AddCleanup(large, func(int) { freed <- true }, 0)
			return planner.BcastNow(ctx, c, large[:], 0)
		}
		if err := planner.BcastNow(ctx, c, make([]byte, 1<<20), 0); err != nil {
			return err
		}
		for range 100 {
			runtime.GC()
			select {
			case <-freed:
				return nil
			default:
				runtime.Gosched()
			}
		}
		return errors.New("the buffer of a one-shot call is still held")
	})
}

// From the second run on a collective allocates nothing on any rank.
func TestRunAllocatesNothing(t *testing.T) {
	comms, err := planner.Local("2x2", nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := make([]chan bool, len(comms))
	end := make(chan error, len(comms))
	for r, c := range comms {
		begin[r] = make(chan bool)
		go func() {
			end <- loop(t.Context(), c, begin[r], end)
		}()
	}
	once := func() {
		for _, b := range begin {
			b <- true
		}
		for range comms {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
	}
	for range 20 {
		once()
	}
	got := testing.AllocsPerRun(50, once)
	for attempt := 0; got > 0 && attempt < 5; attempt++ { // a run's own allocations show in each
		got = testing.AllocsPerRun(50, once)
	}
	if got > 0 {
		t.Errorf("%v allocations per run", got)
	}
	for _, b := range begin {
		close(b)
	}
	for range comms {
		if err := <-end; err != nil {
			t.Error(err)
		}
	}
}

// loop runs three collectives for each word on begin and closes the communicator
// when there are no more.
func loop(ctx context.Context, c *planner.Comm, begin <-chan bool, end chan<- error) error {
	grads := make([]float32, 50_000)
	mean, err := planner.Allreduce(c, grads, grads, tasks.Average)
	if err != nil {
		return err
	}
	share, err := planner.Bcast(c, grads, 1)
	if err != nil {
		return err
	}
	all, err := planner.Barrier(c)
	if err != nil {
		return err
	}
	for range begin {
		end <- errors.Join(mean.Run(ctx), share.Run(ctx), all.Run(ctx))
	}
	return c.Close()
}

func TestCounters(t *testing.T) {
	succeed(t, "2x1", &planner.Options{Plan: "i=adapt"}, func(ctx context.Context, c *planner.Comm) error {
		small, large := make([]byte, 10), make([]byte, 10_000)
		for _, buf := range [][]byte{small, large} {
			if err := planner.BcastNow(ctx, c, buf, 0); err != nil {
				return err
			}
		}
		n := c.Counters()
		if c.Rank() == 0 && (n.Runs != 2 || n.Eager != 1 || n.Direct != 1 || n.Bytes != 10_010) {
			t.Errorf("%+v, want one small and one large message", n)
		}
		return nil
	})
}

func TestExplain(t *testing.T) {
	o := &planner.Options{Plan: "w=2"}
	succeed(t, "4x2", o, func(_ context.Context, c *planner.Comm) error {
		if c.Rank() > 0 {
			return nil
		}
		sum, err := planner.Allreduce(c, make([]float32, 1<<20), make([]float32, 1<<20), tasks.Sum)
		if err != nil {
			return err
		}
		for _, want := range []string{
			"allreduce 1048576 f32 sum on ", "plan: shape=rsag,fs=240KiB,w=2,i=adapt/ring,s=solo",
			"forced by Options.Plan: w=2", "rule: ", "predicted: ", "alternative: shape=flat",
		} {
			if !strings.Contains(sum.Explain(), want) {
				t.Errorf("%q is not in:\n%s", want, sum.Explain())
			}
		}
		return nil
	})
}

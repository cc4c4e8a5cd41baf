package planner_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
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
		if err := planner.Allreduce(ctx, c, in[c.Rank()], out, op); err != nil {
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
		if err := planner.Allreduce(ctx, c, sum, sum, digits); err != nil {
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
						if err := planner.Reduce(ctx, c, recv, recv, first, root); err != nil {
							return err
						}
						to = nil
					}
					if c.Rank() != root || root%2 == 0 {
						if err := planner.Reduce(ctx, c, send, to, first, root); err != nil {
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
		mean, err := planner.PrepareReduce(ctx, c, send, recv, tasks.Average, 3)
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

// An average is divided once per run, however often one waits for it.
func TestAverageAgain(t *testing.T) {
	succeed(t, "2x2", nil, func(ctx context.Context, c *planner.Comm) error {
		in, out := []float64{8}, []float64{0}
		mean, err := planner.PrepareAllreduce(ctx, c, in, out, tasks.Average)
		if err != nil {
			return err
		}
		for range 3 {
			p, err := mean.Start(ctx)
			if err != nil {
				return err
			}
			for range 2 {
				if err := p.Wait(ctx); err != nil {
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
	refused := make(chan struct{})
	succeed(t, "1x2", nil, func(ctx context.Context, c *planner.Comm) error {
		all, err := planner.PrepareBarrier(ctx, c)
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
			close(refused)
			return p.Wait(ctx)
		}
		<-refused // else the barrier may have ended before the second run
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
			sum, err := planner.PrepareAllreduce(ctx, c, bufs[i], bufs[i], tasks.Sum)
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
			if err := p.Wait(ctx); err != nil {
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
				if err := planner.Allreduce(ctx, c, buf, buf, tasks.Sum); err != nil {
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
			return planner.Bcast(ctx, c, large[:], 0)
		}
		if err := planner.Bcast(ctx, c, make([]byte, 1<<20), 0); err != nil {
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
	if slowdown > 1 {
		t.Skip("with the race detector calls allocate")
	}
	comms := localComms(t, "2x2", nil)
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
	if got := testing.AllocsPerRun(200, once); got > 0 { // an inbox grows a few times, in fewer than the runs
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

// loop runs a few collectives for each word on begin and closes the communicator
// when there are no more.
func loop(ctx context.Context, c *planner.Comm, begin <-chan bool, end chan<- error) error {
	grads := make([]float32, 50_000)
	mean, err := planner.PrepareAllreduce(ctx, c, grads, grads, tasks.Average)
	if err != nil {
		return err
	}
	share, err := planner.PrepareBcast(ctx, c, grads, 1)
	if err != nil {
		return err
	}
	scaled, err := planner.PrepareReduceScatter(ctx, c, make([]half.Float16, 4*c.Size()), make([]half.Float16, 4), tasks.Average)
	if err != nil {
		return err
	}
	all, err := planner.PrepareBarrier(ctx, c)
	if err != nil {
		return err
	}
	for range begin {
		end <- errors.Join(mean.Run(ctx), share.Run(ctx), scaled.Run(ctx), all.Run(ctx))
	}
	return c.Close()
}

func TestCounters(t *testing.T) {
	succeed(t, "2x1", &planner.Options{Plan: "i=adapt"}, func(ctx context.Context, c *planner.Comm) error {
		small, large := make([]byte, 10), make([]byte, 10_000)
		for _, buf := range [][]byte{small, large} {
			if err := planner.Bcast(ctx, c, buf, 0); err != nil {
				return err
			}
		}
		n := raw.Counters(c)
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
		sum, err := planner.PrepareAllreduce(t.Context(), c, make([]float32, 1<<20), make([]float32, 1<<20), tasks.Sum)
		if err != nil {
			return err
		}
		wantText(t, "Explain", sum.Explain(),
			"allreduce 1048576 f32 sum on ", "plan: shape=rsag,fs=240KiB,w=2,i=adapt/ring,s=solo",
			"forced by Options.Plan: w=2", "rule: ", "predicted: ", "alternative: shape=flat",
		)
		return nil
	})
}

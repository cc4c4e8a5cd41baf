package executor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/tasks"
)

// small is an allreduce or a bcast of a few numbers that is run again and again.
type small struct {
	runs []*executor.Run
	send [][]int64
	recv [][]int64
	root int // of a bcast; -1: allreduce
}

func newSmall(t failer, w *executor.World, topo string, root, count int, plan string) *small {
	h, p := parse(t, topo, plan)
	s := &small{root: root, send: make([][]int64, w.Size()), recv: make([][]int64, w.Size())}
	for r := range s.recv {
		s.send[r], s.recv[r] = make([]int64, count), make([]int64, count)
	}
	j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Op: tasks.Sum, Type: tasks.Int64, Count: int64(count)}, p}
	if root >= 0 {
		j.request = tasks.Request{Coll: tasks.Bcast, Type: tasks.Int64, Count: int64(count), Root: levels.Rank(root)}
		s.runs = j.bind(t, nil, raws(s.recv))
		return s
	}
	s.runs = j.bind(t, raws(s.send), raws(s.recv))
	return s
}

// call is one rank's part of a call that no other has the numbers of.
func (s *small) call(ctx context.Context, rank, number int) error {
	sum := int64(0)
	for r := range s.send {
		sum += int64(number * (r + 1))
	}
	for i := range s.send[rank] {
		s.send[rank][i] = int64(number * (rank + 1))
		s.recv[rank][i] = -1
		if rank == s.root {
			s.recv[rank][i] = sum
		}
	}
	if err := s.runs[rank].Do(ctx); err != nil {
		return err
	}
	for i, got := range s.recv[rank] {
		if got != sum {
			return fmt.Errorf("call %d, root %d, element %d is %d, want %d", number, s.root, i, got, sum)
		}
	}
	return nil
}

// Small calls give the same results whether they run straight through, are taken over
// by the engine at any step because a message is late, or meet messages of something
// else in the ring. Which of these happens is up to the pauses.
func TestStraightAndTakenOver(t *testing.T) {
	straightAndTakenOver(t, func(t *rapid.T, h *levels.Topology, c executor.Config) (*executor.World, func() error) {
		w := onProcessors(rapid.IntRange(1, h.Size()).Draw(t, "processors"), h.Size(), c)
		return w, w.Close
	})
}

func straightAndTakenOver(t *testing.T, open func(*rapid.T, *levels.Topology, executor.Config) (w *executor.World, end func() error)) {
	var all executor.Counters
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "ranks")
		topo := fmt.Sprintf("1x%d", n)
		h, _ := parse(t, topo, "")
		w, end := open(t, h, executor.Config{EagerBudget: 1 << rapid.IntRange(12, 16).Draw(t, "budget")})
		defer end()
		plan := rapid.SampledFrom([]string{
			"shape=han,fs=all,w=1,i=sm/rings,s=sm/rings", "shape=flat,fs=all,w=1,i=adapt/binomial", "shape=flat,fs=all,w=1,i=nbc/binomial",
		}).Draw(t, "plan")
		count := rapid.SampledFrom([]int{0, 1, 3, 4, 40}).Draw(t, "count")
		list := []*small{newSmall(t, w, topo, -1, count, plan)}
		for root := range n {
			list = append(list, newSmall(t, w, topo, root, count, plan))
		}
		order := rapid.SliceOfN(rapid.IntRange(0, len(list)-1), 60, 60).Draw(t, "order")
		lazy := rapid.IntRange(0, 8).Draw(t, "lazy") // of 8 calls
		messages := rapid.Bool().Draw(t, "messages")
		succeed(t, w, func(ctx context.Context, r int) error {
			c := w.Endpoint(levels.Rank(r)).Comm(0)
			for number, which := range order {
				if rand.IntN(8) < lazy {
					clocktest.Pause(ctx, time.Duration(rand.IntN(100))*time.Microsecond)
				}
				if messages && number%7 == 0 { // in the same rings
					if err := shift(ctx, c, number); err != nil {
						return err
					}
				}
				if err := list[which].call(ctx, r, number); err != nil {
					return err
				}
			}
			return nil
		})
		for r := range n {
			c := w.Endpoint(levels.Rank(r)).Comm(0).Counters()
			all.Runs += c.Runs
			all.Straight += c.Straight
		}
	})
	t.Logf("%d of %d calls went straight through", all.Straight, all.Runs)
	if all.Straight == 0 || all.Straight == all.Runs {
		t.Errorf("%d of %d calls went straight through, want some and not all", all.Straight, all.Runs)
	}
}

// shift sends a number to the next rank and hears that of the one before.
func shift(ctx context.Context, c *executor.Comm, number int) error {
	n := c.Size()
	out, in := []int64{int64(number)}, []int64{-1}
	send, err := c.Send(ctx, (c.Rank()+1)%levels.Rank(n), 1, 0, raw(out))
	if err != nil {
		return err
	}
	recv, err := c.Recv(ctx, (c.Rank()+levels.Rank(n)-1)%levels.Rank(n), 1, 0, raw(in))
	if err != nil {
		return err
	}
	if err := recv.Wait(ctx); err != nil {
		return err
	}
	if in[0] != int64(number) {
		return fmt.Errorf("message %d is %d", number, in[0])
	}
	return send.Wait(ctx)
}

// A small call whose context ends while it waits for a rank that doesn't come ends on
// all ranks, whether it still looks at the ring or is the engine's already.
func TestCancelWhileStraight(t *testing.T) {
	for range 100 {
		w := onProcessors(2, 2, executor.Config{})
		runs, _ := sumsOn(t, w, "1x2", "shape=flat,fs=all,w=1,i=nbc/binomial", 0, 1)
		for range 3 {
			do(t, w, runs)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		over := make(chan struct{})
		errs := ranks(t, w, func(long context.Context, r int) error {
			if r == 0 {
				defer close(over)
				return runs[0].Do(ctx)
			}
			for range rand.IntN(50) {
				runtime.Gosched()
			}
			cancel(errEnough)
			<-over
			return runs[1].Do(long)
		})
		for r, err := range errs {
			if !errors.Is(err, errEnough) {
				t.Fatalf("rank %d: %v, want %v", r, err, errEnough)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Once in so many calls a straight one first looks for messages that it doesn't need.
func TestLooksForStrays(t *testing.T) {
	w := onProcessors(2, 2, executor.Config{})
	defer w.Close()
	runs, _ := sumsOn(t, w, "1x2", "shape=flat,fs=all,w=1,i=nbc/binomial", 0, 1)
	var looks [2]int
	for r, run := range runs {
		executor.OnStray(run, func() { looks[r]++ })
	}
	const times = 3
	for range times * executor.StrayCalls {
		do(t, w, runs)
	}
	if looks != [2]int{times, times} {
		t.Errorf("%v looks, want %d of each rank", looks, times)
	}
}

// rings counts the pairs of a world's goroutine ranks that have rings.
func rings(w *executor.World) (n int) {
	executor.OnLink(w, 0, func(l wire.Link) { n = l.(interface{ Rings() int }).Rings() })
	return n
}

// Two ranks get rings with the first program of small messages between them, unless
// there are many ranks for each processor.
func TestRingsOnDemand(t *testing.T) {
	h, p := parse(t, "1x5", "shape=flat,fs=all,w=1,i=nbc/binomial")
	for processors, want := range map[int]int{1: 0, 2: 4} {
		w := onProcessors(processors, 5, executor.Config{})
		for _, test := range []struct{ count, want int }{{100_000, 0}, {1, want}} {
			j := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: int64(test.count), Type: tasks.Int32}, p}
			do(t, w, j.bind(t, nil, raws(numbers(5, test.count))))
			if got := rings(w); got != test.want {
				t.Errorf("%d processors, bcast of %d elements: %d pairs of 5 ranks have rings, want %d", processors, test.count, got, test.want)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

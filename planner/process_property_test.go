package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// source lets rapid draw casegen's cases.
type source struct{ t *rapid.T }

func (s source) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(s.t, "n") }

// value is element i of a rank's input; values tell ranks and elements apart.
func value[T int32 | uint8 | float64](rank, i int) T { return T((i*7 + rank*13) % 11) }

// expected is what a piece of a receive buffer must be, from element i of its
// source's input on.
func expected[T int32 | uint8 | float64](r tasks.Request, size int, p tasks.Piece, i int) T {
	switch {
	case p.From != tasks.Everyone && !r.Reduces():
		return value[T](int(p.From), i)
	case p.From != tasks.Everyone:
		size = int(p.From+p.More) + 1
	}
	sum := value[T](0, i) // which a user's operation of casegen keeps
	for rank := 1; rank < size && r.Op.ID() != tasks.OpUser; rank++ {
		sum += value[T](rank, i)
	}
	return sum
}

// buffers makes a rank's buffers for a request; in place, one is part of the other.
func buffers[T int32 | uint8 | float64](c *planner.Comm, r tasks.Request) (send, recv, input []T) {
	rank, size := levels.Rank(c.Rank()), int64(unsafe.Sizeof(*new(T)))
	in, out := r.Buffers(rank, c.Size())
	send, recv = make([]T, in/size), make([]T, out/size)
	off, n := r.Block(rank)
	off, n = off/size, n/size
	switch {
	case r.Input(rank) == tasks.Send && r.Receives(rank):
		return send, recv, send
	case r.Input(rank) == tasks.Send && r.Coll == tasks.Scatter:
		return send, send[off:][:n], send
	case r.Input(rank) == tasks.Send:
		return send, nil, send
	case r.Exchanges():
	case r.TakesBlocks():
		return recv, recv[:n], recv
	case r.GivesBlocks():
		return recv[off:][:n], recv, recv
	}
	return recv, recv, recv
}

// prepare makes the collective that a request asks for.
func prepare[T int32 | uint8 | float64](ctx context.Context, c *planner.Comm, r tasks.Request, send, recv []T) (*planner.Collective, error) {
	var counts []int
	for i := range r.Counts.Len() {
		counts = append(counts, int(r.Counts.At(i)))
	}
	switch {
	case r.Coll == tasks.Barrier:
		return planner.PrepareBarrier(ctx, c)
	case r.Coll == tasks.Bcast:
		return planner.PrepareBcast(ctx, c, recv, int(r.Root))
	case r.Coll == tasks.Reduce:
		return planner.PrepareReduce(ctx, c, send, recv, r.Op, int(r.Root))
	case r.Coll == tasks.Allgather && counts != nil:
		return planner.PrepareAllgatherv(ctx, c, send, recv, counts)
	case r.Coll == tasks.Allgather:
		return planner.PrepareAllgather(ctx, c, send, recv)
	case r.Coll == tasks.Gather && counts != nil:
		return planner.PrepareGatherv(ctx, c, send, recv, counts, int(r.Root))
	case r.Coll == tasks.Gather:
		return planner.PrepareGather(ctx, c, send, recv, int(r.Root))
	case r.Coll == tasks.Scatter && counts != nil:
		return planner.PrepareScatterv(ctx, c, send, recv, counts, int(r.Root))
	case r.Coll == tasks.Scatter:
		return planner.PrepareScatter(ctx, c, send, recv, int(r.Root))
	case r.Coll == tasks.ReduceScatter && counts != nil:
		return planner.PrepareReduceScatterv(ctx, c, send, recv, counts, r.Op)
	case r.Coll == tasks.ReduceScatter:
		return planner.PrepareReduceScatter(ctx, c, send, recv, r.Op)
	case !r.Matrix.IsZero():
		return planner.PrepareAlltoallMatrix(ctx, c, send, recv, r.Matrix)
	case r.Coll == tasks.Alltoall:
		return planner.PrepareAlltoall(ctx, c, send, recv)
	case r.Coll == tasks.Scan:
		return planner.PrepareScan(ctx, c, send, recv, r.Op)
	case r.Coll == tasks.Exscan:
		return planner.PrepareExscan(ctx, c, send, recv, r.Op)
	}
	return planner.PrepareAllreduce(ctx, c, send, recv, r.Op)
}

// runCase runs a request and checks what it leaves behind.
func runCase[T int32 | uint8 | float64](ctx context.Context, c *planner.Comm, r tasks.Request) error {
	send, recv, input := buffers[T](c, r)
	col, err := prepare(ctx, c, r, send, recv)
	if err != nil {
		return err
	}
	me, size := levels.Rank(c.Rank()), int64(unsafe.Sizeof(*new(T)))
	for range 2 {
		for _, p := range r.Given(me, c.Size()) {
			for i := range p.Len / size {
				input[p.At/size+i] = value[T](c.Rank(), int(p.Off/size+i))
			}
		}
		if err := col.Run(ctx); err != nil {
			return err
		}
		for _, p := range r.Promised(me, c.Size()) {
			for i := range p.Len / size {
				if got, want := recv[p.At/size+i], expected[T](r, c.Size(), p, int(p.Off/size+i)); got != want {
					return fmt.Errorf("%v, plan %v: element %d is %v, want %v", r, col.Plan(), p.At/size+i, got, want)
				}
			}
		}
	}
	return nil
}

func runAny(ctx context.Context, c *planner.Comm, r tasks.Request) error {
	switch r.Type {
	case tasks.Uint8:
		return runCase[uint8](ctx, c, r)
	case tasks.Float64:
		return runCase[float64](ctx, c, r)
	}
	return runCase[int32](ctx, c, r)
}

// Random requests under random plans, over shared memory and TCP.
func TestProcessesProperty(t *testing.T) {
	registry := all.Submodules()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "ranks")
		perNode := rapid.IntRange(1, n).Draw(t, "per node")
		depth := rapid.IntRange(2, 4).Draw(t, "levels")
		// The last node may be smaller, and so may its domains and the last site.
		place := func(r int, cfg *join.Config) {
			cfg.Node = fmt.Sprint("n", r/perNode)
			if depth > 2 {
				cfg.NUMA = fmt.Sprint(r % perNode * 2 / perNode)
			}
			if depth > 3 {
				cfg.Site = fmt.Sprint("site", r/perNode/2)
			}
		}
		paths := make([][]string, n)
		for r := range paths {
			var at join.Config
			place(r, &at)
			paths[r] = [][]string{2: {at.Node}, 3: {at.NUMA, at.Node}, 4: {at.NUMA, at.Node, at.Site}}[depth]
		}
		// Of its levels the job leaves out those that tell nothing.
		topology, err := levels.Named(levels.Standard(depth), paths)
		if err != nil {
			t.Fatal(err)
		}
		var cases []tasks.Request
		plans := ""
		for _, coll := range tasks.Requestable() {
			one := casegen.Options{Coll: coll, Topology: topology, Registry: registry}.Draw(source{t})
			one.Plan.Segment = max(one.Plan.Segment, one.Request.Bytes()/64) // tiny ones take long between processes
			cases = append(cases, one.Request)
			plans += fmt.Sprintf("%v:%v;", coll, one.Plan)
		}
		t.Logf("%v on %v under %s", cases, topology, plans)
		o := &planner.Options{Plan: plans}
		raw.SeamsOf(o).NoPeerReads = rapid.Bool().Draw(t, "no peer reads")
		comms := joinPlaced(t, n, o, place)
		for rank, err := range each(comms, func(ctx context.Context, c *planner.Comm) error {
			for _, r := range cases {
				err := runAny(ctx, c, r)
				if err != nil && !errors.Is(err, submodules.ErrUnsupported) && !errors.Is(err, tasks.ErrPlan) { // which all ranks find alike
					return err
				}
			}
			return nil
		}) {
			if err != nil {
				t.Fatalf("rank %d: %v", rank, err)
			}
		}
		closeAll(t, comms)
	})
}

// Several collectives in flight on communicators of their own, started and waited
// for in different orders, beside point-to-point messages.
func TestProcessesInFlight(t *testing.T) {
	const streams, n = 4, 50_000
	processes(t, 4, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		var sums [streams]*planner.Collective
		var bufs [streams][]int64
		for i := range sums {
			on, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			bufs[i] = make([]int64, n*(i+1)/streams)
			if sums[i], err = planner.PrepareAllreduce(ctx, on, bufs[i], bufs[i], tasks.Sum); err != nil {
				return err
			}
		}
		draw := rand.New(rand.NewPCG(1, uint64(c.Rank())))
		for round := range 10 {
			var pending [streams]*planner.Pending
			for _, i := range draw.Perm(streams) {
				for j := range bufs[i] {
					bufs[i][j] = int64(round * (c.Rank() + i))
				}
				var err error
				if pending[i], err = sums[i].Start(ctx); err != nil {
					return err
				}
			}
			for _, i := range draw.Perm(streams) {
				if err := pending[i].Wait(ctx); err != nil {
					return err
				}
				for j, got := range bufs[i] {
					if want := int64(round * (6 + 4*i)); got != want {
						return fmt.Errorf("stream %d, element %d: %d, want %d", i, j, got, want)
					}
				}
			}
		}
		return nil
	})
}

// Point-to-point messages of all sizes between all pairs, both ways at once.
func TestProcessesSendRecv(t *testing.T) {
	sizes := []int{0, 1, 8, 100, 4096, 4097, 70_000, 300_000, 1 << 20}
	processes(t, 4, 2, nil, func(ctx context.Context, c *planner.Comm) error {
		fill := func(from, to, tag, i int) byte { return byte(from*31 + to*17 + tag*7 + i) }
		var sends, recvs []*planner.Transfer
		var into [][]byte
		for peer := range c.Size() {
			if peer == c.Rank() {
				continue
			}
			for tag, n := range sizes {
				buf, dst := make([]byte, n), make([]byte, n+3)
				for i := range buf {
					buf[i] = fill(c.Rank(), peer, tag, i)
				}
				s, err := planner.StartSend(ctx, c, peer, tag, buf)
				if err != nil {
					return err
				}
				r, err := planner.StartRecv(ctx, c, peer, tag, dst)
				if err != nil {
					return err
				}
				sends, recvs, into = append(sends, s), append(recvs, r), append(into, dst)
			}
		}
		at := 0
		for peer := range c.Size() {
			if peer == c.Rank() {
				continue
			}
			for tag, n := range sizes {
				got, err := recvs[at].Wait(ctx)
				if err != nil || got != n {
					return fmt.Errorf("from %d, tag %d: %d bytes, want %d: %v", peer, tag, got, n, err)
				}
				for i, b := range into[at][:n] {
					if b != fill(peer, c.Rank(), tag, i) {
						return fmt.Errorf("from %d, tag %d: byte %d is wrong", peer, tag, i)
					}
				}
				if _, err := sends[at].Wait(ctx); err != nil {
					return err
				}
				at++
			}
		}
		return nil
	})
}

// More segments than a program has: it runs in passes.
func TestProcessesPasses(t *testing.T) {
	shapes := []int{1, 2, 4}
	if testing.Short() {
		shapes = shapes[1:2]
	}
	for _, perNode := range shapes {
		o := &planner.Options{Plan: "shape=han,fs=64B,w=3,s=sm,i=adapt/chain"}
		processes(t, 4, perNode, o, func(ctx context.Context, c *planner.Comm) error {
			for _, coll := range []tasks.Collective{tasks.Allreduce, tasks.Bcast} {
				r := tasks.Request{Coll: coll, Count: 40_001, Type: tasks.Int32, Root: 3}
				if coll == tasks.Allreduce {
					r.Op, r.Root = tasks.Sum, 0
				}
				if _, n, _, err := tasks.Passes(r, mustPlan(o.Plan)); err != nil || n < 2 {
					return fmt.Errorf("%d passes, want some: %w", n, err)
				}
				if err := runCase[int32](ctx, c, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func mustPlan(text string) tasks.Plan {
	p, err := tasks.ParsePlan(text)
	if err != nil {
		panic(err)
	}
	return p
}

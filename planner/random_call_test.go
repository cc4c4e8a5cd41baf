package planner_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/tasks"
)

// activeCall is one rank's part of a collective.
type activeCall[T comparable] struct {
	p        *randomPlayer
	o        *randomOp
	r        randomRequest // of this rank: a fault may have twisted it
	e        *elements[T]
	op       reduction[T]
	salt     uint64   // of a twisted one, whose input is nobody's business
	runs     uint64   // so far
	seeds    []uint64 // of the run's input, by rank
	in, out  *guarded[T]
	send     []T
	recv     []T
	input    []T // part of one of the two
	inPlace  bool
	receives bool
	col      *planner.Collective
}

func (e *elements[T]) call(p *randomPlayer, o *randomOp, twist randomTwist) randomCall {
	a := &activeCall[T]{p: p, o: o, r: *o.call, e: e}
	if o.call.op != "" {
		a.op = *e.reduction(o.call.op)
	}
	twistCall(a, twist)
	if p.faultIs(o, userFaults) {
		a.op.op = tasks.UserOp(a.r.op, a.op.op.Commutative(), evil(p, a.op.fold))
	}
	return a
}

// lengths are those of the rank's buffers, -1 for one that it doesn't have.
func (a *activeCall[T]) lengths() (send, recv int) {
	n, all, root := a.r.block(a.p.me), a.r.sum(a.p.size()), a.p.me == a.r.root
	only := func(n int) int {
		if root {
			return n
		}
		return -1
	}
	switch a.r.coll {
	case tasks.Bcast:
		return -1, n
	case tasks.Allreduce, tasks.Scan, tasks.Exscan:
		return n, n
	case tasks.Reduce:
		return n, only(n)
	case tasks.Allgather:
		return n, all
	case tasks.Gather:
		return n, only(all)
	case tasks.Scatter:
		return only(all), n
	case tasks.ReduceScatter:
		return all, n
	case tasks.Alltoall:
		if a.r.rows != nil {
			return a.r.gives(a.p.me, a.p.size()), a.r.gets(a.p.me)
		}
		return all, all
	}
	return -1, -1
}

// create makes the buffers and, unless the call is made in one go, the collective.
func (a *activeCall[T]) create() (err error) {
	if err = a.buffers(); err != nil || a.r.way == wayNow {
		return err
	}
	c, root := a.p.comm, a.r.root
	switch {
	case a.r.coll == tasks.Barrier:
		a.col, err = planner.PrepareBarrier(a.p.ctx, c)
	case a.r.coll == tasks.Bcast:
		a.col, err = planner.PrepareBcast(a.p.ctx, c, a.recv, root)
	case a.r.coll == tasks.Allreduce:
		a.col, err = planner.PrepareAllreduce(a.p.ctx, c, a.send, a.recv, a.op.op)
	case a.r.coll == tasks.Reduce:
		a.col, err = planner.PrepareReduce(a.p.ctx, c, a.send, a.recv, a.op.op, root)
	case a.r.rows != nil && a.r.told:
		var rows tasks.Matrix
		if rows, err = tasks.NewMatrix(a.r.rows); err == nil {
			a.col, err = planner.PrepareAlltoallMatrix(a.p.ctx, c, a.send, a.recv, rows)
		}
	case a.r.rows != nil:
		sends, recvs := a.pairs()
		a.col, err = planner.PrepareAlltoallv(a.p.ctx, c, a.send, sends, a.recv, recvs)
	case a.r.coll == tasks.Alltoall:
		a.col, err = planner.PrepareAlltoall(a.p.ctx, c, a.send, a.recv)
	case a.r.coll == tasks.Scan:
		a.col, err = planner.PrepareScan(a.p.ctx, c, a.send, a.recv, a.op.op)
	case a.r.coll == tasks.Exscan:
		a.col, err = planner.PrepareExscan(a.p.ctx, c, a.send, a.recv, a.op.op)
	case a.r.coll == tasks.Allgather && a.r.counts != nil:
		a.col, err = planner.PrepareAllgatherv(a.p.ctx, c, a.send, a.recv, a.r.counts)
	case a.r.coll == tasks.Allgather:
		a.col, err = planner.PrepareAllgather(a.p.ctx, c, a.send, a.recv)
	case a.r.coll == tasks.Gather && a.r.counts != nil:
		a.col, err = planner.PrepareGatherv(a.p.ctx, c, a.send, a.recv, a.r.counts, root)
	case a.r.coll == tasks.Gather:
		a.col, err = planner.PrepareGather(a.p.ctx, c, a.send, a.recv, root)
	case a.r.coll == tasks.Scatter && a.r.counts != nil:
		a.col, err = planner.PrepareScatterv(a.p.ctx, c, a.send, a.recv, a.r.counts, root)
	case a.r.coll == tasks.Scatter:
		a.col, err = planner.PrepareScatter(a.p.ctx, c, a.send, a.recv, root)
	case a.r.counts != nil:
		a.col, err = planner.PrepareReduceScatterv(a.p.ctx, c, a.send, a.recv, a.r.counts, a.op.op)
	default:
		a.col, err = planner.PrepareReduceScatter(a.p.ctx, c, a.send, a.recv, a.op.op)
	}
	return err
}

func (a *activeCall[T]) now(ctx context.Context) error {
	a.fill()
	c, root := a.p.comm, a.r.root
	switch {
	case a.r.coll == tasks.Barrier:
		return planner.Barrier(ctx, c)
	case a.r.coll == tasks.Bcast:
		return planner.Bcast(ctx, c, a.recv, root)
	case a.r.coll == tasks.Allreduce:
		return planner.Allreduce(ctx, c, a.send, a.recv, a.op.op)
	case a.r.coll == tasks.Reduce:
		return planner.Reduce(ctx, c, a.send, a.recv, a.op.op, root)
	case a.r.rows != nil:
		sends, recvs := a.pairs()
		return planner.Alltoallv(ctx, c, a.send, sends, a.recv, recvs)
	case a.r.coll == tasks.Alltoall:
		return planner.Alltoall(ctx, c, a.send, a.recv)
	case a.r.coll == tasks.Scan:
		return planner.Scan(ctx, c, a.send, a.recv, a.op.op)
	case a.r.coll == tasks.Exscan:
		return planner.Exscan(ctx, c, a.send, a.recv, a.op.op)
	case a.r.coll == tasks.Allgather && a.r.counts != nil:
		return planner.Allgatherv(ctx, c, a.send, a.recv, a.r.counts)
	case a.r.coll == tasks.Allgather:
		return planner.Allgather(ctx, c, a.send, a.recv)
	case a.r.coll == tasks.Gather && a.r.counts != nil:
		return planner.Gatherv(ctx, c, a.send, a.recv, a.r.counts, root)
	case a.r.coll == tasks.Gather:
		return planner.Gather(ctx, c, a.send, a.recv, root)
	case a.r.coll == tasks.Scatter && a.r.counts != nil:
		return planner.Scatterv(ctx, c, a.send, a.recv, a.r.counts, root)
	case a.r.coll == tasks.Scatter:
		return planner.Scatter(ctx, c, a.send, a.recv, root)
	case a.r.counts != nil:
		return planner.ReduceScatterv(ctx, c, a.send, a.recv, a.r.counts, a.op.op)
	}
	return planner.ReduceScatter(ctx, c, a.send, a.recv, a.op.op)
}

// pairs are this rank's counts in an alltoallv.
func (a *activeCall[T]) pairs() (sends, recvs []int) {
	for _, row := range a.r.rows {
		recvs = append(recvs, row[a.p.me])
	}
	return a.r.rows[a.p.me], recvs
}

func (a *activeCall[T]) run(ctx context.Context) error {
	a.fill()
	return a.col.Run(ctx)
}

func (a *activeCall[T]) start(ctx context.Context) (func() error, error) {
	a.fill()
	pending, err := a.col.Start(ctx)
	if err != nil {
		return nil, err
	}
	return func() error {
		first := pending.Wait(ctx)
		if again := pending.Wait(ctx); !errors.Is(again, first) { // the same, and nothing is divided twice
			a.p.wrong("%v: Wait returned %v and then %v", a.o, first, again)
		}
		return first
	}, nil
}

// buffers makes those of this rank, and finds where its input goes.
func (a *activeCall[T]) buffers() (err error) {
	sends, gets := a.lengths()
	a.receives = gets >= 0
	shared := a.r.shared>>a.p.me&1 != 0
	a.inPlace = a.r.inPlace>>a.p.me&1 != 0 && a.receives && sends >= 0
	in, out := sends, gets
	if a.inPlace {
		in, out = max(in, out), -1
	}
	if in >= 0 {
		if a.in, err = a.e.newGuarded(a.p, in, shared, a.mark(1)); err != nil {
			return err
		}
		a.send = a.in.data
	}
	if out < 0 && !a.inPlace && a.r.junk && a.r.coll != tasks.Barrier {
		out = 3 // of no use: it is ignored
	}
	if out >= 0 {
		if a.out, err = a.e.newGuarded(a.p, out, shared, a.mark(2)); err != nil {
			return err
		}
		a.recv = a.out.data
	}
	a.input = a.send
	if a.r.coll == tasks.Bcast {
		a.input = a.recv
	}
	if !a.inPlace {
		return nil
	}
	off, n := a.r.before(a.p.me), a.r.block(a.p.me)
	switch a.r.coll {
	case tasks.Allgather, tasks.Gather:
		a.recv, a.send = a.in.data, a.in.data[off:][:n]
		a.input = a.send
	case tasks.Scatter:
		a.recv = a.send[off:][:n]
	case tasks.ReduceScatter:
		a.recv = a.send[:n]
	default:
		a.recv = a.send
	}
	return nil
}

func (a *activeCall[T]) mark(which uint64) uint64 {
	return mix(a.p.p.seed, uint64(a.o.id), uint64(a.p.me), which, 99)
}

// fill begins a run with fresh input, and rubbish elsewhere.
func (a *activeCall[T]) fill() {
	a.runs++
	a.seeds = a.seeds[:0]
	for rank := range a.p.size() {
		a.seeds = append(a.seeds, mix(a.p.p.seed, uint64(a.o.id), a.runs, uint64(rank), a.salt))
	}
	if a.p.shared != nil {
		a.p.shared.entered[a.o.id].Add(1)
	}
	for _, g := range []*guarded[T]{a.in, a.out} {
		if g != nil {
			g.scribble()
		}
	}
	if a.r.coll == tasks.Bcast && a.p.me != a.r.root {
		return
	}
	for i := range a.input {
		a.input[i] = a.given(a.p.me, i)
	}
}

// given is what a rank puts in.
func (a *activeCall[T]) given(rank, i int) T {
	value := a.e.value
	if a.op.value != nil {
		value = a.op.value
	}
	return value(mix(a.seeds[rank] + uint64(i)))
}

func (a *activeCall[T]) drop() {
	for _, g := range []*guarded[T]{a.in, a.out} {
		if g != nil {
			g.free()
		}
	}
}

// over checks what a call has left in the buffers.
func (a *activeCall[T]) over(err error, final bool) {
	if verdict := a.verdict(err); verdict != nil {
		a.p.wrong("%v, run %d on rank %d of %d, error %v: %w", a.o, a.runs, a.p.me, a.p.size(), err, verdict)
	}
	if !final {
		return
	}
	for _, g := range []*guarded[T]{a.in, a.out} {
		if g != nil {
			g.let(a.p, fmt.Sprint(a.o), err != nil)
		}
	}
}

func (a *activeCall[T]) verdict(err error) error {
	from, to := 0, 0 // of a receive buffer nothing is promised, but of what is none all
	for _, g := range []*guarded[T]{a.in, a.out} {
		if g == nil {
			continue
		}
		if from, to = 0, 0; g == a.out && (!a.receives || a.getsNothing()) {
			to = len(g.data)
		}
		if err := g.touched(from, to); err != nil {
			return err
		}
	}
	if keeps := !a.inPlace && a.r.coll != tasks.Bcast || a.getsNothing() || a.r.coll == tasks.Scatter || a.r.coll == tasks.Bcast && a.p.me == a.r.root; keeps {
		for i, got := range a.input {
			if want := a.given(a.p.me, i); got != want {
				return fmt.Errorf("input %d was changed: %v, was %v", i, got, want)
			}
		}
	}
	if err != nil || !a.receives || a.getsNothing() || a.salt != 0 {
		return a.arrived(err)
	}
	for i, got := range a.recv {
		if want := a.want(i); got != want {
			return fmt.Errorf("element %d of %d is %v, want %v", i, len(a.recv), got, want)
		}
	}
	return a.arrived(err)
}

// getsNothing reports whether this is rank 0 of an exscan, whose buffers stay as they are.
func (a *activeCall[T]) getsNothing() bool { return a.r.coll == tasks.Exscan && a.p.me == 0 }

// arrived checks that a barrier has let nobody through before all have come.
func (a *activeCall[T]) arrived(err error) error {
	if err != nil || a.salt != 0 || a.p.shared == nil || !a.o.synchronizes() {
		return nil
	}
	if n := int(a.p.shared.entered[a.o.id].Load()); n < int(a.runs)*a.p.size() {
		return fmt.Errorf("returned when %d ranks had come, want %d", n, int(a.runs)*a.p.size())
	}
	return nil
}

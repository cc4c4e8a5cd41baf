package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// drawn lets rapid choose, and shrink, the numbers of a case.
type drawn struct{ t *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "n") }

// drawConfig draws limits under which small messages go at once, ask for credit
// or are refunded all the time.
func drawConfig(t *rapid.T) executor.Config {
	return executor.Config{
		EagerMax:    rapid.SampledFrom([]int64{0, -1, 1, 64, 4096}).Draw(t, "EagerMax"),
		EagerBudget: rapid.SampledFrom([]int64{0, 1, 100, 300, 5000}).Draw(t, "EagerBudget"),
	}
}

// drawWorld draws limits, and whether each rank has a processor or all share one.
func drawWorld(t *rapid.T, n int) *executor.World {
	processors := rapid.SampledFrom([]int{1, n}).Draw(t, "processors")
	return onProcessors(processors, n, drawConfig(t))
}

// maxSteps bounds a case, over all ranks.
const maxSteps = 20_000

// draw draws a case that the catalogue supports and that is small enough.
func draw(t *rapid.T, o casegen.Options) casegen.Case {
	o.Registry, o.MaxRanks = all.Submodules(), 12
	c := o.Draw(drawn{t})
	if steps(t, c) > maxSteps {
		t.Skip("more steps than a quick case may have")
	}
	return c
}

// steps counts a case's steps, and skips one that can't be.
func steps(t *rapid.T, c casegen.Case) (n int) {
	for r := range c.Topology.Size() {
		b, err := job{nil, c.Topology, c.Request, c.Plan}.compile(levels.Rank(r))
		if errors.Is(err, submodules.ErrUnsupported) || errors.Is(err, tasks.ErrPlan) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if b.Whole != nil {
			n += b.Whole.Len() * int(b.Passes)
		}
		n += b.Rest.Len()
	}
	return n
}

// round is one use of a run: what the ranks put in, and what must come out.
type round struct {
	request tasks.Request
	send    [][]byte // by rank; nil if none has any
	recv    [][]byte
	inputs  [][]byte // what the ranks put in, without what lies between
}

// newRound draws inputs that are small whole numbers in every type, so that sums
// of floats are exact and results compare bit for bit.
func newRound(t *rapid.T, r tasks.Request, size int) round {
	return roundFrom(t, rapid.IntRange(0, 200).Draw(t, "seed"), r, size)
}

func roundFrom(t failer, seed int, r tasks.Request, size int) round {
	d := round{request: r}
	for rank := range levels.Rank(size) {
		send, recv := r.Buffers(rank, size)
		buffers := map[tasks.Region][]byte{
			tasks.Send: bytes.Repeat([]byte{0xa5}, int(send)), tasks.Recv: bytes.Repeat([]byte{0xa5}, int(recv)),
		}
		var in []byte
		for _, p := range r.Given(rank, size) {
			in = append(in, make([]byte, p.Off+p.Len-int64(len(in)))...)
			fill(in[p.Off:], r.Type, seed+31*int(rank)+7*int(p.Off))
			copy(buffers[r.Input(rank)][p.At:], in[p.Off:])
		}
		d.inputs = append(d.inputs, in)
		d.recv = append(d.recv, buffers[tasks.Recv])
		d.send = append(d.send, buffers[tasks.Send])
	}
	return d
}

// fill writes numbers of a type, from a first one on.
func fill(b []byte, of tasks.Datatype, first int) {
	for i := range len(b) / of.Size() {
		v := (first + 7*i) % 256
		switch of {
		case tasks.Int32:
			copy(b[4*i:], raw([]int32{int32(v)}))
		case tasks.Uint8:
			b[i] = byte(v)
		case tasks.Float64:
			copy(b[8*i:], raw([]float64{float64(v)}))
		}
	}
}

// source returns what a piece is cut from: one input, or several combined.
func (d round) source(t failer, p tasks.Piece) []byte {
	t.Helper()
	switch {
	case p.From == tasks.Everyone:
		return fold(t, d.request, d.inputs)
	case p.More > 0:
		return fold(t, d.request, d.inputs[p.From:][:p.More+1])
	}
	return d.inputs[p.From]
}

// fold combines inputs in the order of ranks.
func fold(t failer, r tasks.Request, in [][]byte) []byte {
	f, err := kernel.For(r.Op, r.Type)
	if err != nil {
		t.Fatal(err)
	}
	sum := slices.Clone(in[0])
	for _, next := range in[1:] {
		f(sum, sum, next)
	}
	return sum
}

// check compares receive buffers with what the collective promises.
func (d round) check(t failer, c casegen.Case) {
	t.Helper()
	for rank := range levels.Rank(len(d.recv)) {
		for _, p := range d.request.Promised(rank, len(d.recv)) {
			from := d.source(t, p)
			if got, want := d.recv[rank][p.At:][:p.Len], from[p.Off:][:p.Len]; !bytes.Equal(got, want) {
				t.Fatalf("%v: rank %d has from byte %d on\n%x, want\n%x", c, rank, p.At, got, want)
			}
		}
	}
}

// Random cases give what their collective says, run after run on changing
// buffers, under all limits of flow control.
func TestRandomCasesRunRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t, casegen.Options{})
		w := drawWorld(t, c.Topology.Size())
		defer w.Close()
		var runs []*executor.Run
		for i := range 3 {
			d := newRound(t, c.Request, w.Size())
			if i == 0 {
				runs = job{w, c.Topology, c.Request, c.Plan}.bind(t, d.send, d.recv)
			}
			for r, run := range runs {
				refusesShort(t, run, d.send[r], d.recv[r])
				if err := run.Rebind(d.send[r], d.recv[r]); err != nil {
					t.Fatal(err)
				}
			}
			do(t, w, runs)
			d.check(t, c)
		}
	})
}

// refusesShort takes a byte from each buffer.
func refusesShort(t failer, run *executor.Run, send, recv []byte) {
	t.Helper()
	if n := len(send); n > 0 && run.Rebind(send[:n-1], recv) == nil {
		t.Fatalf("a send buffer of %d bytes in place of %d was taken", n-1, n)
	}
	if n := len(recv); n > 0 && run.Rebind(send, recv[:n-1]) == nil {
		t.Fatalf("a receive buffer of %d bytes in place of %d was taken", n-1, n)
	}
}

// Several runs on two communicators are on their way at once, and each rank waits
// for them in an order of its own.
func TestRandomCasesInFlight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t, casegen.Options{})
		w := drawWorld(t, c.Topology.Size())
		defer w.Close()
		reverse(w)
		const flights = 5
		var rounds []round
		var runs [][]*executor.Run
		for i := range flights {
			d := newRound(t, c.Request, w.Size())
			rounds = append(rounds, d)
			runs = append(runs, job{w, c.Topology, c.Request, c.Plan}.bindOn(t, executor.CommID(i%2), d.send, d.recv))
		}
		orders := make([][]int, w.Size())
		for r := range orders {
			orders[r] = rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(t, "order")
		}
		succeed(t, w, func(ctx context.Context, r int) error {
			for i := range runs {
				if err := runs[i][r].Start(ctx); err != nil {
					return fmt.Errorf("start %d: %w", i, err)
				}
			}
			for _, i := range orders[r] {
				if err := runs[i][r].Wait(ctx); err != nil {
					return fmt.Errorf("wait for %d: %w", i, err)
				}
			}
			return nil
		})
		for _, d := range rounds {
			d.check(t, c)
		}
	})
}

// One request gives the same integers under all plans.
func TestPlansAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := draw(t, casegen.Options{})
		d := newRound(t, first.Request, first.Topology.Size())
		in := make([][]byte, len(d.recv))
		for r := range in {
			in[r] = slices.Clone(d.recv[r])
		}
		for range 4 {
			// Only layout and plan are drawn anew.
			c := casegen.Case{Request: first.Request, Topology: first.Topology}
			c.Plan = casegen.Options{Registry: all.Submodules(), Topology: first.Topology, Coll: first.Request.Coll}.Draw(drawn{t}).Plan
			if steps(t, c) > maxSteps {
				t.Skip("more steps than a quick case may have")
			}
			for r := range in {
				copy(d.recv[r], in[r])
			}
			w := local.New(c.Topology.Size(), executor.Config{})
			do(t, w, job{w, c.Topology, c.Request, c.Plan}.bind(t, d.send, d.recv))
			w.Close()
			d.check(t, c)
		}
	})
}

// No rank leaves a barrier before all have come.
func TestBarrierHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t, casegen.Options{Coll: tasks.Barrier})
		w := drawWorld(t, c.Topology.Size())
		defer w.Close()
		late := rapid.IntRange(0, w.Size()-1).Draw(t, "late")
		runs := job{w, c.Topology, c.Request, c.Plan}.bind(t, nil, make([][]byte, w.Size()))
		left := make(chan int, w.Size())
		succeed(t, w, func(ctx context.Context, r int) error {
			if r == late {
				for range 100 {
					_ = w.Endpoint(levels.Rank(r)).Waiting() // gives the others time
				}
				if n := len(left); n > 0 {
					return fmt.Errorf("rank %d has left before rank %d came, and %d more", <-left, r, n-1)
				}
			}
			if err := runs[r].Do(ctx); err != nil {
				return err
			}
			left <- r
			return nil
		})
	})
}

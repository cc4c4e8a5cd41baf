package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// uniformCall is a call of a drawn collective in place: each element of the input says whose it is.
type uniformCall struct {
	coll       tasks.Collective
	root, n    int // n: elements of a block
	send, recv []int64
}

// uniformColls are those that overwrite their input where it lies in the result.
var uniformColls = []tasks.Collective{tasks.Allreduce, tasks.Reduce, tasks.ReduceScatter, tasks.Alltoall, tasks.Scan, tasks.Exscan}

func drawCall(draw *rand.Rand, size int) uniformCall {
	return uniformCall{coll: uniformColls[draw.IntN(len(uniformColls))], root: draw.IntN(size), n: 1 + draw.IntN(3000)}
}

// input is element i of what a rank puts in.
func (u *uniformCall) input(rank, i int) int64 { return int64(rank+1)*1_000_003 + int64(i) }

// fill gives the call its buffers.
func (u *uniformCall) fill(c *planner.Comm) {
	u.recv = make([]int64, u.n)
	if u.coll == tasks.ReduceScatter || u.coll == tasks.Alltoall {
		u.recv = make([]int64, u.n*c.Size())
	}
	for i := range u.recv {
		u.recv[i] = u.input(c.Rank(), i)
	}
	if u.send = u.recv; u.coll == tasks.Reduce && u.root != c.Rank() {
		u.recv = nil
	}
}

// make makes the collective.
func (u *uniformCall) make(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
	switch u.coll {
	case tasks.Allreduce:
		return planner.PrepareAllreduce(ctx, c, u.send, u.recv, tasks.Sum)
	case tasks.Reduce:
		return planner.PrepareReduce(ctx, c, u.send, u.recv, tasks.Sum, u.root)
	case tasks.ReduceScatter:
		return planner.PrepareReduceScatter(ctx, c, u.send, u.recv[:u.n], tasks.Sum)
	case tasks.Alltoall:
		return planner.PrepareAlltoall(ctx, c, u.send, u.recv)
	case tasks.Scan:
		return planner.PrepareScan(ctx, c, u.send, u.recv, tasks.Sum)
	default:
		return planner.PrepareExscan(ctx, c, u.send, u.recv, tasks.Sum)
	}
}

// check looks at the result.
func (u *uniformCall) check(c *planner.Comm) error {
	me, first := c.Rank(), 0
	from, to := 0, c.Size() // ranks whose elements are summed
	got := u.recv
	switch u.coll {
	case tasks.Reduce:
		if me != u.root {
			return u.isInput(me)
		}
	case tasks.ReduceScatter:
		got, first = got[:u.n], me*u.n
	case tasks.Scan:
		to = me + 1
	case tasks.Exscan:
		if to = me; me == 0 {
			return nil
		}
	case tasks.Alltoall:
		for i, v := range got {
			if want := u.input(i/u.n, me*u.n+i%u.n); v != want {
				return fmt.Errorf("%v: element %d is %d, want %d", u.coll, i, v, want)
			}
		}
		return nil
	}
	for i, v := range got {
		want := int64(0)
		for r := from; r < to; r++ {
			want += u.input(r, first+i)
		}
		if v != want {
			return fmt.Errorf("%v: element %d is %d, want %d", u.coll, i, v, want)
		}
	}
	return nil
}

// isInput looks whether the input is what it was.
func (u *uniformCall) isInput(me int) error {
	for i, v := range u.send {
		if want := u.input(me, i); v != want {
			return fmt.Errorf("after an error of %v element %d of the input is %d, was %d", u.coll, i, v, want)
		}
	}
	return nil
}

// outcomes are the ends of calls by their number, on all ranks.
type outcomes struct {
	mu   sync.Mutex
	well map[int][]bool // by rank
}

func (o *outcomes) note(call, rank, size int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.well[call] == nil {
		o.well[call] = make([]bool, size)
	}
	o.well[call][rank] = err == nil
}

// differ returns the calls that have not ended alike.
func (o *outcomes) differ() (calls []int) {
	for call, well := range o.well {
		if slices.Contains(well, true) && slices.Contains(well, false) {
			calls = append(calls, call)
		}
	}
	return calls
}

// callUntilCancelled makes the same drawn calls on all ranks until the context of one of them ends. It returns how they
// have ended, and makes the failed one again.
func callUntilCancelled(t *testing.T, comms []*planner.Comm, seed uint64, uniform bool) *outcomes {
	t.Helper()
	o := &outcomes{well: map[int][]bool{}}
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		draw := rand.New(rand.NewPCG(seed, 0))
		mine := ctx
		victim, after := draw.IntN(c.Size()), draw.IntN(40)
		for call := 0; ; call++ {
			u := drawCall(draw, c.Size())
			if call == after && c.Rank() == victim {
				var end context.CancelFunc
				mine, end = context.WithCancel(ctx)
				time.AfterFunc(time.Duration(rand.Int64N(int64(2*time.Millisecond))), end)
			}
			u.fill(c)
			col, err := u.make(ctx, c)
			if err != nil {
				return err
			}
			if call%3 == 1 {
				var started *planner.Pending
				if started, err = col.Start(mine); err == nil {
					err = started.Wait(mine)
				}
			} else {
				err = col.Run(mine)
			}
			o.note(call, c.Rank(), c.Size(), err)
			if err == nil {
				if err := u.check(c); err != nil {
					return err
				}
				continue
			}
			if !planner.Recoverable(err) && !(c.Rank() == victim && errors.Is(err, context.Canceled)) {
				return fmt.Errorf("call %d: %w", call, err)
			}
			if !uniform {
				return nil
			}
			changed := u.isInput(c.Rank())
			change, err := c.Shrink(ctx)
			if err != nil || len(change.Lost) > 0 {
				return fmt.Errorf("lost %v: %w", change.Lost, err)
			}
			next := change.Comm
			again, err := col.On(ctx, next)
			if err == nil {
				err = again.Run(ctx)
			}
			return errors.Join(err, changed, u.check(next), next.Close())
		}
	}))
	return o
}

// With Options.Uniform a call ends alike on all ranks when one of them is cancelled at any moment. What it overwrites in place is
// put back, so that it can be made again.
func TestUniform(t *testing.T) {
	for _, topo := range []string{"1x3", "2x2", "3x2", "4x1"} {
		for _, processes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s processes=%t", topo, processes), func(t *testing.T) {
				t.Parallel()
				for range 3 {
					seed := rand.Uint64()
					o := callUntilCancelled(t, uniformComms(t, topo, processes, &planner.Options{Uniform: true}), seed, true)
					if calls := o.differ(); len(calls) > 0 || t.Failed() {
						t.Fatalf("seed %d: calls %v ended well on some ranks and not on others", seed, calls)
					}
				}
			})
		}
	}
}

// Without it calls end differently: the test before this can fail.
func TestNotUniform(t *testing.T) {
	for range 100 {
		comms := uniformComms(t, "3x2", false, nil)
		o := callUntilCancelled(t, comms, rand.Uint64(), false)
		for _, c := range comms {
			_ = c.Close()
		}
		if len(o.differ()) > 0 {
			return
		}
	}
	t.Error("100 times a rank was cancelled, and no call ended differently on two ranks")
}

// Uniform calls allocate nothing either, from the second one on.
func TestUniformAllocates(t *testing.T) {
	if slowdown > 1 {
		t.Skip("the race detector allocates")
	}
	comms := localComms(t, "1x2", &planner.Options{Uniform: true})
	defer closeAll(t, comms)
	const calls = 400
	var err error
	var cols [2]*planner.Collective
	for r, c := range comms {
		buf := make([]float32, 1000)
		if cols[r], err = planner.PrepareAllreduce(t.Context(), c, buf, buf, tasks.Sum); err != nil {
			t.Fatal(err)
		}
	}
	other := make(chan error, 1)
	go func() { // ends with the calls
		var err error
		for range calls + 2 {
			err = errors.Join(err, cols[1].Run(context.Background()))
		}
		other <- err
	}()
	one := func() { err = errors.Join(err, cols[0].Run(context.Background())) }
	one()
	got := testing.AllocsPerRun(calls, one)
	if err = errors.Join(err, <-other); err != nil || got > 0 {
		t.Errorf("%v allocations a call, %v; want none", got, err)
	}
}

func uniformComms(t *testing.T, topo string, processes bool, o *planner.Options) []*planner.Comm {
	t.Helper()
	if processes {
		var nodes, perNode int
		if _, err := fmt.Sscanf(topo, "%dx%d", &nodes, &perNode); err != nil {
			t.Fatal(err)
		}
		return joinEach(t, nodes*perNode, func(r int) *planner.Options {
			if r == 0 {
				return o
			}
			return nil // what rank 0 says counts
		}, onNodes(perNode))
	}
	comms := localComms(t, topo, o)
	return comms
}

// What can't be made on other ranks is an error that says why.
func TestOnOthers(t *testing.T) {
	comms := localComms(t, "1x3", nil)
	strangers := localComms(t, "1x3", nil)
	defer closeAll(t, strangers)
	defer closeAll(t, comms)
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		buf := []int32{int32(c.Rank())}
		col, err := planner.PrepareBcast(ctx, c, buf, 2)
		if err != nil {
			return err
		}
		if _, err := col.On(ctx, strangers[c.Rank()]); err == nil {
			return errors.New("made on ranks of another job")
		}
		if _, err := col.On(ctx, nil); err == nil {
			return errors.New("made on nothing")
		}
		color := 0
		if c.Rank() == 0 {
			color = planner.NoColor
		}
		some, err := c.Split(ctx, color, -c.Rank())
		if err != nil || some == nil {
			return err
		}
		on, err := col.On(ctx, some) // on which the root is rank 0
		if err == nil {
			err = on.Run(ctx)
		}
		if err != nil || buf[0] != 2 {
			return fmt.Errorf("%d: %w", buf[0], err)
		}
		of0, err := planner.PrepareBcast(ctx, c, buf, 0)
		if err != nil {
			return err
		}
		if _, err := of0.On(ctx, some); err == nil {
			return errors.New("made without its root")
		}
		return nil
	}))
}

// Communicators made from a uniform one are uniform: the leaf of a bcast sends too, for the barrier
// behind it.
func TestUniformIsInherited(t *testing.T) {
	for _, uniform := range []bool{false, true} {
		succeed(t, "2x1", &planner.Options{Uniform: uniform}, func(ctx context.Context, c *planner.Comm) (err error) {
			id := []uint64{0}
			if c.Rank() == 0 {
				if id[0], err = raw.DrawID(c); err != nil {
					return err
				}
			}
			if err := planner.Bcast(ctx, c, id, 0); err != nil {
				return err
			}
			sub, err := raw.Sub(c, id[0], []int{0, 1})
			if err != nil {
				return err
			}
			dup, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			for i, d := range []*planner.Comm{sub, dup} {
				if err := planner.Bcast(ctx, d, id, 0); err != nil {
					return err
				}
				if n := raw.Counters(d); c.Rank() == 1 && n.Eager > 0 != uniform {
					return fmt.Errorf("uniform %v, communicator %d: the leaf sends %d messages", uniform, i, n.Eager)
				}
			}
			return errors.Join(sub.Close(), dup.Close())
		})
	}
}

package planner_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
)

// Ranks of a job that is used wrongly, two on a node.
const wrongRanks = 4

// wrongUse is a call that must end in an error, on every rank.
type wrongUse struct {
	what string
	do   func(ctx context.Context, c *planner.Comm) error
	want []string // all in the error
}

// onBoth calls f with goroutine ranks, and with ranks that have the transports of
// processes. f closes them.
func onBoth(t *testing.T, f func(t *testing.T, comms []*planner.Comm)) {
	t.Helper()
	t.Run("goroutines", func(t *testing.T) {
		comms := localComms(t, "2x2", nil)
		f(t, comms)
	})
	t.Run("processes", func(t *testing.T) { f(t, joinProcesses(t, wrongRanks, 2, nil)) })
}

// check does w on all ranks at once.
func (w *wrongUse) check(t *testing.T, comms []*planner.Comm) {
	t.Helper()
	var errs []error
	ended := make(chan struct{})
	go func() { // the test fails before it ends only if it hangs
		defer close(ended)
		errs = each(comms, func(ctx context.Context, c *planner.Comm) error { return caught(func() error { return w.do(ctx, c) }) })
	}()
	select {
	case <-ended:
	case <-time.After(3 * patience):
		t.Fatalf("%s: hangs", w.what)
	}
	for r, err := range errs {
		wantError(t, fmt.Sprintf("%s: rank %d", w.what, r), err, w.want...)
	}
}

// caught is f's error, also if it panics.
func caught(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return f()
}

var errPanic = errors.New("panic")

// says is the error that f panics with, which has none to return.
func says(f func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	f()
	return nil
}

// call is a function or method of the package with arguments that are right, but
// for what the table changes.
type call struct {
	name string
	do   func(ctx context.Context, c *planner.Comm) error
}

// runs makes a collective and runs it.
func runs(f func(ctx context.Context, c *planner.Comm) (*planner.Collective, error)) func(context.Context, *planner.Comm) error {
	return func(ctx context.Context, c *planner.Comm) error {
		col, err := f(ctx, c)
		if err != nil {
			return err
		}
		return col.Run(ctx)
	}
}

// The calls. A communicator that closes, or is none, may be among the arguments, so
// none asks it for its rank.
var (
	one, four = make([]int32, 1), make([]int32, wrongRanks)
	ones      = []int{1, 1, 1, 1}

	evenCounts, _ = tasks.NewMatrix([][]int{ones, ones, ones, ones})

	making = []call{
		{"PrepareBcast", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareBcast(ctx, c, []int32{1}, 0)
		})},
		{"PrepareAllreduce", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareAllreduce(ctx, c, one, make([]int32, 1), tasks.Sum)
		})},
		{"PrepareReduce", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareReduce(ctx, c, one, make([]int32, 1), tasks.Sum, 0)
		})},
		{"PrepareAllgather", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareAllgather(ctx, c, one, make([]int32, wrongRanks))
		})},
		{"PrepareGather", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareGather(ctx, c, one, make([]int32, wrongRanks), 0)
		})},
		{"PrepareScatter", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareScatter(ctx, c, four, make([]int32, 1), 0)
		})},
		{"PrepareReduceScatter", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareReduceScatter(ctx, c, four, make([]int32, 1), tasks.Sum)
		})},
		{"PrepareAllgatherv", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareAllgatherv(ctx, c, one, make([]int32, wrongRanks), ones)
		})},
		{"PrepareReduceScatterv", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareReduceScatterv(ctx, c, four, make([]int32, 1), ones, tasks.Sum)
		})},
		{"PrepareGatherv", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareGatherv(ctx, c, one, make([]int32, wrongRanks), ones, 0)
		})},
		{"PrepareScatterv", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareScatterv(ctx, c, four, make([]int32, 1), ones, 0)
		})},
		{"PrepareAlltoall", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareAlltoall(ctx, c, four, make([]int32, wrongRanks))
		})},
		{"PrepareAlltoallMatrix", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareAlltoallMatrix(ctx, c, four, make([]int32, wrongRanks), evenCounts)
		})},
		{"PrepareScan", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareScan(ctx, c, one, make([]int32, 1), tasks.Sum)
		})},
		{"PrepareExscan", runs(func(ctx context.Context, c *planner.Comm) (*planner.Collective, error) {
			return planner.PrepareExscan(ctx, c, one, make([]int32, 1), tasks.Sum)
		})},
		{"PrepareBarrier", runs(planner.PrepareBarrier)},
	}
	running = []call{
		{"PrepareAlltoallv", func(ctx context.Context, c *planner.Comm) error {
			col, err := planner.PrepareAlltoallv(ctx, c, four, ones, make([]int32, wrongRanks), ones)
			if err != nil {
				return err
			}
			return col.Run(ctx)
		}},
		{"Alltoallv", func(ctx context.Context, c *planner.Comm) error {
			return planner.Alltoallv(ctx, c, four, ones, make([]int32, wrongRanks), ones)
		}},
		{"Alltoall", func(ctx context.Context, c *planner.Comm) error {
			return planner.Alltoall(ctx, c, four, make([]int32, wrongRanks))
		}},
		{"Bcast", func(ctx context.Context, c *planner.Comm) error {
			return planner.Bcast(ctx, c, []int32{1}, 0)
		}},
		{"Allreduce", func(ctx context.Context, c *planner.Comm) error {
			return planner.Allreduce(ctx, c, one, make([]int32, 1), tasks.Sum)
		}},
		{"Reduce", func(ctx context.Context, c *planner.Comm) error {
			return planner.Reduce(ctx, c, one, make([]int32, 1), tasks.Sum, 0)
		}},
		{"Allgather", func(ctx context.Context, c *planner.Comm) error {
			return planner.Allgather(ctx, c, one, make([]int32, wrongRanks))
		}},
		{"Gather", func(ctx context.Context, c *planner.Comm) error {
			return planner.Gather(ctx, c, one, make([]int32, wrongRanks), 0)
		}},
		{"Scatter", func(ctx context.Context, c *planner.Comm) error {
			return planner.Scatter(ctx, c, four, make([]int32, 1), 0)
		}},
		{"ReduceScatter", func(ctx context.Context, c *planner.Comm) error {
			return planner.ReduceScatter(ctx, c, four, make([]int32, 1), tasks.Sum)
		}},
		{"Allgatherv", func(ctx context.Context, c *planner.Comm) error {
			return planner.Allgatherv(ctx, c, one, make([]int32, wrongRanks), ones)
		}},
		{"ReduceScatterv", func(ctx context.Context, c *planner.Comm) error {
			return planner.ReduceScatterv(ctx, c, four, make([]int32, 1), ones, tasks.Sum)
		}},
		{"Gatherv", func(ctx context.Context, c *planner.Comm) error {
			return planner.Gatherv(ctx, c, one, make([]int32, wrongRanks), ones, 0)
		}},
		{"Scatterv", func(ctx context.Context, c *planner.Comm) error {
			return planner.Scatterv(ctx, c, four, make([]int32, 1), ones, 0)
		}},
		{"Scan", func(ctx context.Context, c *planner.Comm) error {
			return planner.Scan(ctx, c, one, make([]int32, 1), tasks.Sum)
		}},
		{"Exscan", func(ctx context.Context, c *planner.Comm) error {
			return planner.Exscan(ctx, c, one, make([]int32, 1), tasks.Sum)
		}},
		{"Barrier", planner.Barrier},
		{"Any", func(ctx context.Context, c *planner.Comm) error { return second(c.Any(ctx, true)) }},
		{"Split", func(ctx context.Context, c *planner.Comm) error { return second(c.Split(ctx, 0, 0)) }},
		{"Dup", func(ctx context.Context, c *planner.Comm) error { return second(c.Dup(ctx)) }},
		{"DupWith", func(ctx context.Context, c *planner.Comm) error { return second(c.DupWith(ctx, "shape=flat")) }},
		{"Bench", func(ctx context.Context, c *planner.Comm) error { return second(tune.NewBench(ctx, c)) }},
		{"NewMeter", func(ctx context.Context, c *planner.Comm) error { return second(tune.NewMeter(ctx, c, costs.Single)) }},
		{"Send", func(ctx context.Context, c *planner.Comm) error { return planner.Send(ctx, c, 0, 0, one) }},
		{"Recv", func(ctx context.Context, c *planner.Comm) error { return second(planner.Recv(ctx, c, 0, 0, four)) }},
		{"StartSend", func(ctx context.Context, c *planner.Comm) error {
			return second(planner.StartSend(ctx, c, 0, 0, one))
		}},
		{"StartRecv", func(ctx context.Context, c *planner.Comm) error {
			return second(planner.StartRecv(ctx, c, 0, 0, four))
		}},
	}
	others = []call{ // without a context
		{"Alloc", func(_ context.Context, c *planner.Comm) error { return second(planner.Alloc[int32](c, 3)) }},
		{"Close", func(_ context.Context, c *planner.Comm) error { return c.Close() }},
		{"Free", func(_ context.Context, c *planner.Comm) error { return says(func() { planner.Free(c, one) }) }},
		{"Rank", func(_ context.Context, c *planner.Comm) error { return says(func() { c.Rank() }) }},
		{"Size", func(_ context.Context, c *planner.Comm) error { return says(func() { c.Size() }) }},
		{"Topology", func(_ context.Context, c *planner.Comm) error { return says(func() { c.Topology() }) }},
		{"Counters", func(_ context.Context, c *planner.Comm) error { return says(func() { raw.Counters(c) }) }},
		{"Links", func(_ context.Context, c *planner.Comm) error { return says(func() { c.Links() }) }},
	}
)

// nobody is the context of those who have none.
var nobody context.Context

// What is wrong with arguments is an error on the rank that gives them, tells nobody
// else, and the communicator works as before.
func TestWrongArguments(t *testing.T) {
	onBoth(t, func(t *testing.T, comms []*planner.Comm) {
		for _, w := range wrongArguments() {
			w.check(t, comms)
			noErrors(t, each(comms, sum))
			if t.Failed() {
				break
			}
		}
		closeAll(t, comms)
	})
}

func wrongArguments() []wrongUse {
	var uses []wrongUse
	for _, list := range [][]call{making, running} {
		for _, f := range list {
			uses = append(uses, wrongUse{
				"nil context: " + f.name, func(_ context.Context, c *planner.Comm) error { return f.do(nobody, c) },
				[]string{"the context is nil", "context.Background()"},
			})
		}
	}
	for _, list := range [][]call{making, running, others} {
		for _, f := range list {
			for what, none := range map[string]*planner.Comm{"nil": nil, "zero": {}} {
				uses = append(uses, wrongUse{
					what + " communicator: " + f.name, func(ctx context.Context, _ *planner.Comm) error { return f.do(ctx, none) },
					[]string{"the communicator is nil or zero", "Join, Local, Run, Split and Dup"},
				})
			}
		}
	}
	uses = append(uses, wrongValues()...)
	uses = append(uses, wrongRanksGiven()...)
	return append(uses, wrongData()...)
}

// wrongValues are calls on what no call has made.
func wrongValues() (uses []wrongUse) {
	for what, none := range map[string]*planner.Collective{"nil": nil, "zero": {}} {
		for name, f := range map[string]func(ctx context.Context) error{
			"Run":     none.Run,
			"Start":   func(ctx context.Context) error { return second(none.Start(ctx)) },
			"Plan":    func(context.Context) error { return says(func() { none.Plan() }) },
			"Request": func(context.Context) error { return says(func() { none.Request() }) },
			"Explain": func(context.Context) error { return says(func() { none.Explain() }) },
		} {
			uses = append(uses, wrongUse{
				what + " collective: " + name, func(ctx context.Context, _ *planner.Comm) error { return f(ctx) },
				[]string{"the collective is nil or zero", "PrepareBcast, PrepareAllreduce"},
			})
		}
	}
	for what, f := range map[string]func(context.Context) error{
		"nil Pending": (*planner.Pending)(nil).Wait, "zero Pending": (&planner.Pending{}).Wait,
	} {
		uses = append(uses, wrongUse{
			what, func(ctx context.Context, _ *planner.Comm) error { return f(ctx) },
			[]string{"nothing was started", "what Start returns"},
		})
	}
	for what, none := range map[string]*planner.Transfer{"nil": nil, "zero": {}} {
		uses = append(uses, wrongUse{
			what + " Transfer", func(context.Context, *planner.Comm) error { return second(none.Wait(context.Background())) },
			[]string{"nothing was started", "StartSend and StartRecv"},
		})
	}
	return append(uses, wrongUse{"nil context: Start", func(_ context.Context, c *planner.Comm) error {
		b, err := planner.PrepareBarrier(context.Background(), c)
		if err != nil {
			return err
		}
		return second(b.Start(nobody))
	}, []string{"start barrier: the context is nil"}})
}

// wrongRanksGiven are roots and peers that are none, some of them in 32 bits only.
func wrongRanksGiven() (uses []wrongUse) {
	for _, n := range []int{-1, wrongRanks, 1 << 32, 1<<32 + 1, -1 << 32, math.MinInt, math.MaxInt} {
		for name, f := range map[string]func(ctx context.Context, c *planner.Comm) error{
			"PrepareBcast": func(_ context.Context, c *planner.Comm) error {
				return second(planner.PrepareBcast(context.Background(), c, one, n))
			},
			"PrepareReduce": func(_ context.Context, c *planner.Comm) error {
				return second(planner.PrepareReduce(context.Background(), c, one, one, tasks.Sum, n))
			},
			"PrepareGather": func(_ context.Context, c *planner.Comm) error {
				return second(planner.PrepareGather(context.Background(), c, one, four, n))
			},
			"PrepareScatter": func(_ context.Context, c *planner.Comm) error {
				return second(planner.PrepareScatter(context.Background(), c, four, one, n))
			},

			"Bcast": func(ctx context.Context, c *planner.Comm) error { return planner.Bcast(ctx, c, one, n) },
			"Reduce": func(ctx context.Context, c *planner.Comm) error {
				return planner.Reduce(ctx, c, one, one, tasks.Sum, n)
			},
			"Gather":  func(ctx context.Context, c *planner.Comm) error { return planner.Gather(ctx, c, one, four, n) },
			"Scatter": func(ctx context.Context, c *planner.Comm) error { return planner.Scatter(ctx, c, four, one, n) },
		} {
			uses = append(uses, wrongUse{fmt.Sprintf("root %d of %s", n, name), f, []string{fmt.Sprintf("root %d: ranks are 0 to 3", n)}})
		}
		for name, f := range map[string]func(ctx context.Context, c *planner.Comm, tag int) error{
			"send to": func(ctx context.Context, c *planner.Comm, tag int) error { return planner.Send(ctx, c, n, tag, one) },
			"receive from": func(ctx context.Context, c *planner.Comm, tag int) error {
				return second(planner.Recv(ctx, c, n, tag, one))
			},
			"send to ": func(ctx context.Context, c *planner.Comm, tag int) error {
				return second(planner.StartSend(ctx, c, n, tag, one))
			},
			"receive from ": func(ctx context.Context, c *planner.Comm, tag int) error {
				return second(planner.StartRecv(ctx, c, n, tag, one))
			},
		} {
			uses = append(uses, wrongUse{
				fmt.Sprintf("%s rank %d", name, n), func(ctx context.Context, c *planner.Comm) error { return f(ctx, c, 0) },
				[]string{fmt.Sprintf("%s rank %d: ranks are 0 to 3", strings.TrimSpace(name), n)},
			})
		}
	}
	for _, tag := range []int{-1, 1 << 31, 1 << 32, math.MinInt, math.MaxInt} {
		want := []string{fmt.Sprintf("rank 1: tag %d is not between 0 and 2147418111", tag)}
		uses = append(uses,
			wrongUse{fmt.Sprintf("send tag %d", tag), func(ctx context.Context, c *planner.Comm) error {
				return planner.Send(ctx, c, 1, tag, one)
			}, want},
			wrongUse{fmt.Sprintf("receive tag %d", tag), func(ctx context.Context, c *planner.Comm) error {
				return second(planner.StartRecv(ctx, c, 1, tag, one))
			}, want})
	}
	return uses
}

// wrongData are buffers, counts, element types and operations that can't be.
func wrongData() []wrongUse {
	type comm = *planner.Comm
	type withPointer struct{ At *int }
	buf := make([]int64, 40)
	floats := make([]float64, 1)
	local := func(f func(c comm) error) func(context.Context, comm) error {
		return func(_ context.Context, c comm) error { return f(c) }
	}
	counted := func(counts ...int) func(context.Context, comm) error {
		return local(func(c comm) error {
			return second(planner.PrepareAllgatherv(context.Background(), c, buf[:1], buf[:1], counts))
		})
	}
	const whole = 1 << 61 // elements of 8 bytes in 2^64
	return []wrongUse{
		{"pointers", local(func(c comm) error { return second(planner.PrepareBcast(context.Background(), c, []*int{nil}, 0)) }), []string{"bcast: type *int can't be an element: it is no use to another rank; allowed are types without pointers"}},
		{"strings", local(func(c comm) error {
			return second(planner.PrepareAllgather(context.Background(), c, []string{""}, make([]string, 4)))
		}), []string{"type string"}},
		{"bools", local(func(c comm) error {
			return second(planner.PrepareAllreduce(context.Background(), c, []bool{true}, []bool{true}, tasks.Max))
		}), []string{"type bool"}},
		{"interfaces", local(func(c comm) error { return second(planner.PrepareBcast(context.Background(), c, []any{1}, 0)) }), []string{"type interface {}"}},
		{"structs with pointers", local(func(c comm) error { return second(planner.PrepareBcast(context.Background(), c, []withPointer{{}}, 0)) }), []string{"withPointer"}},
		{"memory of pointers", local(func(c comm) error { return second(planner.Alloc[*int](c, 1)) }), []string{"alloc: type *int"}},
		{"a message of strings", func(ctx context.Context, c comm) error { return planner.Send(ctx, c, 1, 0, []string{"x"}) }, []string{"send to rank 1: type string"}},
		{"less than no memory", local(func(c comm) error { return second(planner.Alloc[int16](c, -1)) }), []string{"alloc: -1 elements of 2 bytes; allowed are 0 to "}},

		{"lengths", local(func(c comm) error {
			return second(planner.PrepareAllreduce(context.Background(), c, buf[:2], buf[2:5], tasks.Sum))
		}), []string{"2 elements to send, 3 to receive; they must be equal"}},
		{"nothing to receive into", local(func(c comm) error {
			return second(planner.PrepareAllreduce(context.Background(), c, buf[:2], nil, tasks.Sum))
		}), []string{"2 elements to send, 0 to receive; they must be equal"}},
		{"blocks", local(func(c comm) error {
			return second(planner.PrepareAllgather(context.Background(), c, buf[:2], buf[2:9]))
		}), []string{"2 elements to send, 7 to receive; it must be 8"}},
		{"blocks to take", local(func(c comm) error {
			return second(planner.PrepareReduceScatter(context.Background(), c, buf[:7], buf[7:9], tasks.Sum))
		}), []string{"7 elements to send, 2 to receive; it must be 8 to send"}},
		{"overlap", local(func(c comm) error {
			return second(planner.PrepareAllreduce(context.Background(), c, buf[:4], buf[1:5], tasks.Sum))
		}), []string{"overlap in part; they must be the same or apart"}},
		{"overlap one-shot", func(ctx context.Context, c comm) error {
			return planner.Allreduce(ctx, c, buf[:4], buf[1:5], tasks.Sum)
		}, []string{"overlap in part"}},

		{"negative count", counted(1, -1, 1, 1), []string{"count -1 of rank 1: counts are not negative"}},
		{"too few counts", counted(1, 1), []string{"2 counts for 4 ranks"}},
		{"too many counts", counted(1, 1, 1, 1, 1), []string{"5 counts for 4 ranks"}},
		{"no counts", counted(), []string{"0 counts for 4 ranks"}},
		{"counts that add up to more than there is", counted(math.MaxInt, 1, 0, 0), []string{"count 1 of rank 1", "add up to less than 2^63"}},
		{"counts whose bytes wrap", counted(1<<60, 1, 1<<60, 0), []string{fmt.Sprintf("counts %d+1+%d+0: %d elements of 8 bytes; allowed are %d", 1<<60, 1<<60, whole+1, math.MaxInt64/8)}},
		{"counts whose bytes wrap to nothing", func(ctx context.Context, c comm) error {
			return planner.ReduceScatterv(ctx, c, buf[:1], buf[1:2], []int{1 << 60, 1 << 60, 1, 0}, tasks.Sum)
		}, []string{"elements of 8 bytes; allowed are"}},

		{"zero operation", local(func(c comm) error {
			return second(planner.PrepareAllreduce(context.Background(), c, one, one, tasks.Op{}))
		}), []string{"operation Op(0) is not a reduction; allowed are"}},
		{"operation without a function", func(ctx context.Context, c comm) error {
			return planner.Allreduce(ctx, c, one, one, tasks.UserOp[int32]("none", true, nil))
		}, []string{"operation none: its function is nil"}},
		{"operation with an identity, without a function", local(func(c comm) error {
			return second(planner.PrepareAllreduce(context.Background(), c, one, one, tasks.UserOpWithIdentity[int32]("none", true, 0, nil)))
		}), []string{"operation none: its function is nil"}},
		{"identity that is none", local(func(c comm) error {
			return second(planner.PrepareAllreduce(context.Background(), c, one, one, tasks.UserOpWithIdentity("plus", true, 1, func(a, b int32) int32 { return a + b })))
		}), []string{"operation plus: 1 is no identity"}},
		{"operation on other elements", local(func(c comm) error {
			return second(planner.PrepareAllreduce(context.Background(), c, one, one, tasks.UserOp("wide", true, func(a, _ int64) int64 { return a })))
		}), []string{"operation wide combines i64, the buffer holds i32"}},
		{"bits of floats", local(func(c comm) error {
			return second(planner.PrepareAllreduce(context.Background(), c, floats, floats, tasks.Band))
		}), []string{"band is not defined on f64"}},
		{"places without an index", local(func(c comm) error {
			return second(planner.PrepareAllreduce(context.Background(), c, floats, floats, tasks.MinLoc))
		}), []string{"minloc is not defined on f64"}},

		{"color below NoColor", func(ctx context.Context, c comm) error { return second(c.Split(ctx, planner.NoColor-1, 0)) }, []string{"color -2 is neither NoColor nor from 0 on"}},
		{"the smallest color", func(ctx context.Context, c comm) error { return second(c.Split(ctx, math.MinInt, 0)) }, []string{"color -9223372036854775808 is neither"}},
		{"a plan that is none", func(ctx context.Context, c comm) error { return second(c.DupWith(ctx, "round and round")) }, []string{`DupWith: plan "round and round"`, "is not key=value"}},
		{"a window beyond all bounds", func(ctx context.Context, c comm) error { return second(c.DupWith(ctx, "w=5000000000")) }, []string{"DupWith: ", "w=5000000000: a window is 1 to "}},
		{"an algorithm that is none", func(ctx context.Context, c comm) error { return second(c.DupWith(ctx, "i=adapt/bush")) }, []string{`unknown algorithm "bush"; adapt has `}},
	}
}

// An operation's call on its own communicator is refused, and so is one of another goroutine meanwhile: the reduction
// is under way. It ends well.
func TestOperationBesideCreation(t *testing.T) {
	comms := localComms(t, "2", nil)
	defer closeAll(t, comms)
	inside := make(chan bool)
	noErrors(t, each(comms, func(ctx context.Context, c *planner.Comm) error {
		var other sync.WaitGroup
		defer other.Wait()
		op := tasks.UserOp("uses", true, func(a, b int32) int32 {
			close(inside) // rank 0 combines
			if err := planner.Barrier(ctx, c); !errors.Is(err, planner.ErrBusy) {
				t.Errorf("a barrier in the operation: %v", err)
			}
			other.Wait()
			return a + b
		})
		other.Go(func() {
			if c.Rank() != 0 {
				return // its part is over
			}
			select {
			case <-inside:
				if err := planner.Bcast(ctx, c, []int32{1}, 0); !errors.Is(err, planner.ErrBusy) {
					t.Errorf("a broadcast beside it: %v", err)
				}
			case <-ctx.Done():
			}
		})
		x := []int32{1}
		return planner.Reduce(ctx, c, x, x, op, 0)
	}))
}

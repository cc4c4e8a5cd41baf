package executor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// numbers gives each rank n integers that no two ranks share.
func numbers(size, n int) [][]int32 {
	all := make([][]int32, size)
	for r := range all {
		all[r] = make([]int32, n)
		for i := range all[r] {
			all[r][i] = int32((i + 1) * (2*r + 1))
		}
	}
	return all
}

// sums is what an Allreduce of numbers gives.
func sums(size, n int) []int32 {
	sum := make([]int32, n)
	for i := range sum {
		sum[i] = int32((i + 1) * size * size)
	}
	return sum
}

func check(t failer, rank int, got, want []int32) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("rank %d, element %d of %d: %d, want %d", rank, i, len(want), got[i], want[i])
		}
	}
}

func TestAllreduce(t *testing.T) {
	n := 50_001
	if testing.Short() {
		n = 20_001 // enough for more than one pass, and for segments of all sizes
	}
	for _, topo := range []string{"1x1", "1x4", "4x1", "2x2", "4x2", "4x2/rr", "2x2x2", "a:3,b:1,c:2"} {
		for _, plan := range []string{
			"shape=han,fs=4KiB,w=2,s=sm,m=sm,i=adapt/chain",
			"shape=han,fs=40KiB,w=3,s=adapt/binomial,m=sm,i=adapt/binomial/8KiB",
			"shape=flat,fs=64KiB,w=2,s=adapt,i=adapt/chain/16KiB",
			"shape=han,fs=64B,w=2,s=sm,m=sm,i=adapt/chain",
		} {
			t.Run(topo+"/"+plan, func(t *testing.T) {
				h, p := parse(t, topo, plan)
				w := newWorld(t, h.Size(), executor.Config{})
				send, recv := numbers(h.Size(), n), make([][]int32, h.Size())
				for r := range recv {
					recv[r] = make([]int32, n)
				}
				j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: int64(n), Type: tasks.Int32, Op: tasks.Sum}, p}
				runs := j.bind(t, raws(send), raws(recv))
				for range 3 {
					do(t, w, runs)
					for r := range recv {
						check(t, r, recv[r], sums(h.Size(), n))
						clear(recv[r])
					}
				}
			})
		}
	}
}

// One program goes over a message of more than 1024 segments in passes; its
// memory depends on segments and window only.
func TestPasses(t *testing.T) {
	for _, plan := range []string{
		"shape=han,fs=8B,w=3,s=sm,m=sm,i=adapt/chain",
		"shape=han,fs=8B,w=1,s=adapt/binomial,m=adapt,i=adapt/binomial",
		"shape=flat,fs=8B,w=4,s=sm,m=sm,i=adapt/binomial",
	} {
		for _, inPlace := range []bool{false, true} {
			h, p := parse(t, "2x2", plan)
			const n = 2*1024*3 + 77 // three whole passes and a rest
			w := newWorld(t, h.Size(), executor.Config{})
			r := tasks.Request{Coll: tasks.Allreduce, Count: n, Type: tasks.Int32, Op: tasks.Sum, InPlace: inPlace}
			j := job{w, h, r, p}
			one, err := j.compile(0)
			if err != nil {
				t.Fatal(err)
			}
			if one.Passes != 3 || one.Rest.Request.Count != 77 {
				t.Fatalf("%d passes and %d elements, want 3 and 77", one.Passes, one.Rest.Request.Count)
			}
			if most := int64(4 * 64 * 4 * 4); one.Whole.Scratch > most || one.Whole.Slots > most {
				t.Errorf("%s: %d bytes of scratch, %d of slots for segments of 8", plan, one.Whole.Scratch, one.Whole.Slots)
			}
			send, recv := numbers(h.Size(), n), numbers(h.Size(), n)
			sent := raws(send)
			if inPlace {
				sent = nil
			}
			runs := j.bind(t, sent, raws(recv))
			for range 2 {
				do(t, w, runs)
				for rank := range recv {
					check(t, rank, recv[rank], sums(h.Size(), n))
				}
				recv2 := numbers(h.Size(), n)
				for rank := range recv {
					copy(recv[rank], recv2[rank])
				}
			}
		}
	}
}

func TestBcastFromEveryRootInPasses(t *testing.T) {
	h, p := parse(t, "a:3,b:1,c:2", "shape=han,fs=8B,w=2,s=sm,i=adapt/chain")
	const n = 2*1024 + 5
	w := newWorld(t, h.Size(), executor.Config{EagerBudget: 300})
	for root := range h.Size() {
		recv := numbers(h.Size(), n)
		want := numbers(h.Size(), n)[root]
		j := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: n, Type: tasks.Int32, Root: levels.Rank(root)}, p}
		do(t, w, j.bind(t, nil, raws(recv)))
		for r := range recv {
			check(t, r, recv[r], want)
		}
	}
}

func TestBindChecksWhatItIsGiven(t *testing.T) {
	h, p := parse(t, "1x2", "shape=han,fs=64B,w=2,s=sm")
	w := newWorld(t, 2, executor.Config{})
	c := w.Endpoint(0).Comm(0)
	j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: 4, Type: tasks.Int32, Op: tasks.Sum}, p}
	good, err := j.compile(0)
	if err != nil {
		t.Fatal(err)
	}
	ofOther, err := j.compile(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what, want string
		change     func(b *executor.Binding)
	}{
		{"a short receive buffer", "16 needed", func(b *executor.Binding) { b.Recv = b.Recv[:15] }},
		{"a short send buffer", "16 needed", func(b *executor.Binding) { b.Send = b.Send[:1] }},
		{"no kernel", "no kernel", func(b *executor.Binding) { b.Kernel = nil }},
		{"another rank's program", "a program of rank 1 of 2 on rank 0 of 2", func(b *executor.Binding) { b.Rest = ofOther.Rest }},
	} {
		b := good
		b.Send, b.Recv = make([]byte, 16), make([]byte, 16)
		test.change(&b)
		if _, err := c.Bind(b); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.what, err, test.want)
		}
	}
	run, err := c.Bind(good)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "no buffers") {
		t.Errorf("started without buffers: %v", err)
	}
	if err := run.Rebind(nil, make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	if err := run.Start(context.Background()); err == nil || !strings.Contains(err.Error(), "no buffers") {
		t.Errorf("started without a send buffer: %v", err)
	}
}

func TestBusy(t *testing.T) {
	w := newWorld(t, 2, executor.Config{})
	runs, recv := sumsOn(t, w, "1x2", "shape=han,fs=64B,w=2,s=sm", 0, 4)
	if err := runs[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := runs[0].Start(t.Context()); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("started twice: %v", err)
	}
	if err := runs[0].Rebind(nil, raw(recv[0])); !errors.Is(err, executor.ErrBusy) {
		t.Errorf("rebound while it runs: %v", err)
	}
	succeed(t, w, func(ctx context.Context, r int) error {
		if r == 1 {
			return runs[1].Do(ctx)
		}
		return runs[0].Wait(ctx)
	})
	check(t, 0, recv[0], sums(2, 4))
}

// Ended hears of each step once, never before the steps that it waits for.
func TestEnded(t *testing.T) {
	h, p := parse(t, "2x2", "shape=han,fs=4KiB,w=2,s=sm,i=adapt/chain")
	w := newWorld(t, h.Size(), executor.Config{})
	const n = 5000
	j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: n, Type: tasks.Int32, Op: tasks.Sum}, p}
	send, recv := raws(numbers(h.Size(), n)), raws(numbers(h.Size(), n))
	runs, ended := make([]*executor.Run, h.Size()), make([]map[dag.ID]bool, h.Size())
	for r := range runs {
		b, err := j.compile(levels.Rank(r))
		if err != nil {
			t.Fatal(err)
		}
		b.Send, b.Recv, ended[r] = send[r], recv[r], map[dag.ID]bool{}
		b.Ended = func(step dag.ID) {
			for _, before := range b.Rest.Pred(step) {
				if !ended[r][before] {
					t.Errorf("rank %d: step %d ended before step %d", r, step, before)
				}
			}
			ended[r][step] = true
		}
		if runs[r], err = w.Endpoint(levels.Rank(r)).Comm(0).Bind(b); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if len(ended[r]) != b.Rest.Len() {
				t.Errorf("rank %d: heard of %d of %d steps", r, len(ended[r]), b.Rest.Len())
			}
		}()
	}
	do(t, w, runs)
}

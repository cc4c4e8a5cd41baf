package executor_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/local"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// A link serves one message after the other in each direction; both ends of a
// message must be free; inside a node there is no link.
func TestNetworkDue(t *testing.T) {
	h, _ := parse(t, "3x2", "")
	const ms = time.Millisecond
	n := local.NewNetwork(h, 1e6, 5*ms) // a byte per microsecond
	now := time.Now()
	const size = 10_000 - 66 // with its frame, 10 ms
	for i, test := range []struct {
		from, to levels.Rank
		at, want time.Duration
	}{
		{0, 2, 0, 15 * ms},
		{1, 3, 0, 25 * ms},         // the same link of node 0
		{2, 0, 0, 15 * ms},         // the other direction is free
		{4, 2, 0, 35 * ms},         // node 1 still takes two others
		{0, 4, 100 * ms, 115 * ms}, // all is idle again
	} {
		if got := n.Due(test.from, test.to, size, now.Add(test.at)).Sub(now); got != test.want {
			t.Errorf("message %d: due after %v, want %v", i, got, test.want)
		}
	}
	if !n.Due(0, 1, size, now).IsZero() {
		t.Error("a message inside a node takes time")
	}
}

// Messages of one pair stay in order on a shaped link, and take their time.
func TestShapedTransfers(t *testing.T) {
	h, _ := parse(t, "2x1", "")
	const rate, n, size = 100e6, 40, 50_000
	w := newShaped(t, 2, executor.Config{}, local.NewNetwork(h, rate, 300*time.Microsecond))
	begin := time.Now()
	succeed(t, w, func(ctx context.Context, r int) error {
		for i := range n {
			small := message(i+1, i)
			if r == 0 {
				if err := send(ctx, w, 0, 1, 0, small); err != nil {
					return err
				}
				if err := send(ctx, w, 0, 1, 0, message(size, i)); err != nil {
					return err
				}
				continue
			}
			for _, want := range [][]byte{small, message(size, i)} {
				buf := make([]byte, size)
				got, err := recv(ctx, w, 1, 0, 0, buf)
				if err != nil {
					return err
				}
				if !bytes.Equal(buf[:got], want) {
					return fmt.Errorf("message %d came out of order: %d bytes, want %d", i, got, len(want))
				}
			}
		}
		return nil
	})
	if took, least := time.Since(begin), time.Duration(n*size/rate*1e9); took < least {
		t.Errorf("%d bytes took %v, the link alone needs %v", n*size, took, least)
	}
}

// On an emulated link the broadcast between nodes and the one inside them go on at
// the same time: what HAN's pipeline is for.
func TestLevelsOverlap(t *testing.T) {
	const n, rate = 4 << 20, 125e6
	h, p := parse(t, "2x2", "shape=han,fs=256KiB,w=4,s=sm,i=adapt/chain")
	rec := trace.NewRecorder()
	w := newShaped(t, 4, executor.Config{Hooks: rec.Hooks()}, local.NewNetwork(h, rate, 50*time.Microsecond))
	bufs := make([][]byte, 4)
	for r := range bufs {
		bufs[r] = make([]byte, n)
	}
	copy(bufs[0], message(n, 3))
	runs := job{w, h, tasks.Request{Coll: tasks.Bcast, Count: n, Type: tasks.Uint8}, p}.bind(t, nil, bufs)
	begin := time.Now()
	do(t, w, runs)
	if took, least := time.Since(begin), time.Duration(n/rate*1e9); took < least {
		t.Errorf("it took %v, the link alone needs %v", took, least)
	}
	for r := range bufs {
		if !bytes.Equal(bufs[r], message(n, 3)) {
			t.Errorf("rank %d has something else", r)
		}
	}
	both, between, inside := viz.Overlap(rec.Events(), 2, 'i', 's')
	if both == 0 || between == 0 || inside == 0 {
		t.Errorf("leader 2 was busy for %v between nodes, %v inside, %v with both; want an overlap", between, inside, both)
	}
}

// Hooks hear of every step of every rank once per run, and of the run as a whole.
func TestHooks(t *testing.T) {
	h, p := parse(t, "2x2", "shape=han,fs=8B,w=2,s=sm,i=adapt/chain")
	rec := trace.NewRecorder()
	hooks := rec.Hooks()
	whole := make(chan trace.Event, 100)
	hooks.Run = func(e trace.Event) { whole <- e }
	w := newWorld(t, 4, executor.Config{Hooks: hooks})
	j := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: 5000, Type: tasks.Int32, Op: tasks.Sum, InPlace: true}, p}
	runs := j.bind(t, nil, raws(numbers(4, 5000)))
	for range 2 {
		do(t, w, runs)
	}
	want := 0
	for r := range 4 {
		b, err := j.compile(levels.Rank(r))
		if err != nil {
			t.Fatal(err)
		}
		want += 2 * (int(b.Passes)*b.Whole.Len() + b.Rest.Len())
	}
	seen := map[trace.Event]bool{}
	for _, e := range rec.Events() {
		if e.End < e.Begin || e.Source == nil {
			t.Fatalf("an odd event: %+v", e)
		}
		e.Begin, e.End = 0, 0
		if seen[e] {
			t.Fatalf("step %d of rank %d was told twice", e.Step, e.Rank)
		}
		seen[e] = true
	}
	if len(seen) != want {
		t.Errorf("%d steps were told, want %d", len(seen), want)
	}
	if len(whole) != 8 {
		t.Errorf("%d runs were told, want 8", len(whole))
	}
	if e := <-whole; e.Step != trace.WholeRun || e.End <= e.Begin {
		t.Errorf("an odd run: %+v", e)
	}
}

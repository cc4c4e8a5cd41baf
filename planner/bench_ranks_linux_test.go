package planner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// duty is what all ranks of a benchmark do again and again: a collective, or an
// echo between ranks 0 and 1.
type duty struct {
	what  string
	bytes int64
	grows bool // find out first by how much the first calls let a rank grow
}

// dutyVariable tells a process of this test's binary that it is a benchmark's rank.
const dutyVariable = "TIERFLOW_TEST_DUTY"

// Kinds of ranks, as benchmarks name them.
const (
	onGoroutines = "goroutines"
	onProcesses  = "processes"
)

// prepare returns what a rank does once, and with grows by how many bytes the rank
// that grew most did when it was made and done for the first time.
func (d duty) prepare(ctx context.Context, c *planner.Comm, ranks string) (once func(ctx context.Context) error, grown int64, err error) {
	buf := make([]float32, d.bytes/4)
	clear(buf) // touches its pages
	once = func(ctx context.Context) error { return echo(ctx, c, buf) }
	if d.what == "echo" {
		return once, 0, nil
	}
	first := func() error {
		call, err := planner.PrepareBcast(ctx, c, buf, 0)
		if d.what == tasks.Allreduce.String() {
			call, err = planner.PrepareAllreduce(ctx, c, buf, buf, tasks.Sum)
		}
		if err != nil {
			return err
		}
		once = call.Run
		return errors.Join(once(ctx), once(ctx))
	}
	if !d.grows {
		return once, 0, first()
	}
	grown, err = growth(ctx, c, first)
	if ranks == onGoroutines {
		grown /= int64(c.Size())
	}
	return once, grown, err
}

// echo is a round trip.
func echo(ctx context.Context, c *planner.Comm, buf []float32) error {
	send := func() error { return planner.Send(ctx, c, 1-c.Rank(), 0, buf) }
	recv := func() error { _, err := planner.Recv(ctx, c, 1-c.Rank(), 0, buf); return err }
	if c.Rank() == 0 {
		return errors.Join(send(), recv())
	}
	return errors.Join(recv(), send())
}

// growth returns the bytes that f adds to the process that grows most.
func growth(ctx context.Context, c *planner.Comm, f func() error) (int64, error) {
	most := make([]int64, 1)
	for range 2 { // what one-shot calls need themselves is there after the first time
		if err := planner.Allreduce(ctx, c, most, most, tasks.Max); err != nil {
			return 0, err
		}
	}
	var sizes [2]int64
	for i := range sizes {
		var err error
		if i == 1 {
			err = f()
		}
		err = errors.Join(err, planner.Barrier(ctx, c))
		sizes[i] = resident()
		if err = errors.Join(err, planner.Barrier(ctx, c)); err != nil {
			return 0, err
		}
	}
	most[0] = sizes[1] - sizes[0]
	err := planner.Allreduce(ctx, c, most, most, tasks.Max)
	return most[0], err
}

// resident is what this process has in memory of its own and shared with its node,
// bytes, without garbage.
func resident() (all int64) {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 3 && (words[0] == "RssAnon:" || words[0] == "RssShmem:") {
			kib, _ := strconv.ParseInt(words[1], 10, 64)
			all += kib << 10
		}
	}
	return all
}

// serve does the duty of a rank that isn't 0 until rank 0 leaves.
func (d duty) serve(ctx context.Context, c *planner.Comm, ranks string) error {
	once, _, err := d.prepare(ctx, c, ranks)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	for err == nil {
		err = once(ctx)
	}
	return c.Close() // what went wrong fails rank 0 as well
}

// enlist starts the other ranks and returns rank 0's end.
func (d duty) enlist(ctx context.Context, b *testing.B, ranks, topo string) *planner.Comm {
	b.Helper()
	t := tasktest.Topology(b, topo)
	if ranks == onProcesses {
		return d.start(ctx, b, t)
	}
	comms, err := planner.LocalOn(t, nil)
	if err != nil {
		b.Fatal(err)
	}
	var others sync.WaitGroup
	for _, c := range comms[1:] {
		others.Go(func() {
			if err := d.serve(ctx, c, ranks); err != nil {
				b.Errorf("rank %d: %v", c.Rank(), err)
			}
		})
	}
	b.Cleanup(func() {
		if err := comms[0].Close(); err != nil {
			b.Error(err)
		}
		others.Wait()
	})
	return comms[0]
}

// start makes the other ranks processes of this test's binary.
func (d duty) start(ctx context.Context, b *testing.B, t *levels.Topology) *planner.Comm {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	node := func(r int) string { return fmt.Sprintf("node%d", t.Node(levels.Rank(r))) }
	for r := 1; r < t.Size(); r++ {
		var said bytes.Buffer
		rank := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^TestBenchmarkRank$")
		rank.Stdout, rank.Stderr = &said, &said
		rank.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %t", dutyVariable, d.what, d.bytes, d.grows),
			fmt.Sprintf("TIERFLOW_RANK=%d", r), fmt.Sprintf("TIERFLOW_SIZE=%d", t.Size()),
			"TIERFLOW_RENDEZVOUS="+l.Addr().String(), "TIERFLOW_SECRET=a test", "TIERFLOW_NODE="+node(r))
		if err := rank.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := rank.Wait(); err != nil {
				b.Errorf("rank %d: %v\n%s", r, err, &said)
			}
		})
	}
	c, err := raw.JoinAs(ctx, join.Config{
		Size: t.Size(), Rendezvous: []string{l.Addr().String()}, Secret: "a test", Node: node(0), Listener: l,
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { // before the waits
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
	return c
}

// TestBenchmarkRank is a rank of a benchmark.
func TestBenchmarkRank(t *testing.T) {
	var d duty
	if text := os.Getenv(dutyVariable); text == "" {
		t.Skip("runs only as a process that a benchmark starts")
	} else if _, err := fmt.Sscan(text, &d.what, &d.bytes, &d.grows); err != nil {
		t.Fatal(err)
	}
	c, err := planner.Join(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.serve(t.Context(), c, onProcesses); err != nil {
		t.Error(err)
	}
}

// run measures a duty on rank 0.
func (d duty) run(b *testing.B, ranks, topo string) (c *planner.Comm, grown int64) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // of a benchmark that hangs
	b.Cleanup(cancel)
	c = d.enlist(ctx, b, ranks, topo)
	once, grown, err := d.prepare(ctx, c, ranks)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(d.bytes)
	b.ReportAllocs()
	for b.Loop() {
		if err := once(ctx); err != nil {
			b.Fatal(err)
		}
	}
	return c, grown
}

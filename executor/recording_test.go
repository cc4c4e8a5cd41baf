package executor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Worlds of one process that record to the same path keep to files of their own;
// the name of a closed one is free again.
func TestRecordSeveralWorlds(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "job.%r")
	var worlds []*executor.World
	for range 3 {
		w := newWorld(t, 2, executor.Config{})
		if err := w.Record(path); err != nil {
			t.Fatal(err)
		}
		worlds = append(worlds, w)
	}
	for i, w := range worlds {
		for range i + 1 {
			do(t, w, barriers(t, w, "1x2"))
		}
	}
	for i, suffix := range []string{"", ".w2", ".w3"} {
		for r := range 2 {
			name := filepath.Join(dir, fmt.Sprintf("job.%d%s", r, suffix))
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rec, err := flight.ReadRecording(name, data)
			if err != nil {
				t.Fatal(err)
			}
			if rec.Rank != r || len(rec.Calls) != i+1 {
				t.Errorf("%s is of rank %d with %d calls, want rank %d and %d", name, rec.Rank, len(rec.Calls), r, i+1)
			}
		}
	}
	if err := worlds[1].Close(); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 2, executor.Config{})
	for range 2 { // again is not another
		if err := w.Record(path); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := w.Endpoint(1).Recording().Name, filepath.Join(dir, "job.1.w2"); got != want {
		t.Errorf("a world after the second was closed records to %s, want %s", got, want)
	}
}

// watches are the ways to look at what ranks do that BenchmarkRecorder compares; each is beside the
// first one.
var watches = []struct {
	name   string
	events int // RecorderEvents
	every  int // one call of so many is traced; 0: none
	timed  bool
}{
	{"bare", -1, 0, false}, {"timed", -1, 0, true}, {"recorder", 0, 0, true}, {"every16", 0, 16, true}, {"every1", 0, 1, true},
}

// BenchmarkRecorder measures the cost of recording, which is always on, and of traces: allreduces
// without and with them, and with the times of some calls, in turns of a millisecond or so, so that other work on the
// machine meets all. It reports the lower quartile of what a call takes, and of what it takes beside one of the same turn without
// a recorder the three quartiles.
func BenchmarkRecorder(b *testing.B) {
	for _, topo := range []string{"1x2", "4x2"} {
		for _, size := range []int64{8, 64 << 10} {
			b.Run(fmt.Sprintf("op=allreduce/topo=%s/bytes=%s", topo, tasks.FormatBytes(size)), func(b *testing.B) {
				batch := int(max(20, 16384/(8+size/8)))
				turns := make([]func(), len(watches))
				for i, watch := range watches {
					turns[i] = watchedCalls(b, topo, size, batch, watch.events, watch.every, watch.timed)
				}
				took := make([][]float64, len(watches)) // ns a call
				for turn := 0; b.Loop(); turn++ {
					for i := range turns {
						i = (i + turn) % len(turns) // none is always behind another one
						began := time.Now()
						turns[i]()
						took[i] = append(took[i], float64(time.Since(began).Nanoseconds())/float64(batch))
					}
				}
				b.ReportMetric(0, "ns/op")
				for i, watch := range watches {
					b.ReportMetric(quarters(took[i])[0], "ns/"+watch.name)
					more := make([]float64, len(took[0]))
					for turn, ns := range took[0] {
						more[turn] = took[i][turn] / ns
					}
					for q, value := range quarters(more) {
						if i > 0 {
							b.ReportMetric(value, fmt.Sprintf("%s/bare-q%d", watch.name, q+1))
						}
					}
				}
			})
		}
	}
}

// A trace of all calls has each of them, with all of its steps.
func TestTraceHasAllCalls(t *testing.T) {
	const calls = 3
	h, p := parse(t, "2x2", "shape=han,fs=all,w=1,i=adapt/chain,s=adapt/chain")
	dir, w := t.TempDir(), newWorld(t, 4, executor.Config{}) // the world writes there when it closes
	if err := w.Trace(executor.TraceOptions{Dir: dir, Every: 1, Nodes: []string{"a", "a", "b", "b"}}); err != nil {
		t.Fatal(err)
	}
	runs := job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: 3, Type: tasks.Int32, Op: tasks.Sum}, p}.bind(t, raws(numbers(4, 3)), raws(numbers(4, 3)))
	for n := range calls {
		do(t, w, runs)
		if err := w.KeepTraces(); err != nil {
			t.Fatalf("after call %d: %v", n, err)
		}
	}
	for r := range 4 {
		name := filepath.Join(dir, fmt.Sprintf("r%d.trace", r))
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := trace.ReadFile(name, data)
		if err != nil || len(f.Calls) != calls || f.Lost != 0 {
			t.Fatalf("rank %d: %d calls, %v; want %d", r, len(f.Calls), err, calls)
		}
		for _, c := range f.Calls {
			k := &f.Kinds[c.Kind]
			if want := len(f.Programs[k.Program(0)]); len(c.Steps) != want || want == 0 {
				t.Errorf("rank %d, call %d: %d steps, want %d", r, c.Seq, len(c.Steps), want)
			}
		}
	}
}

// A run's footprint grows with its scratch memory.
func TestFootprint(t *testing.T) {
	h, p := parse(t, "2x1", "shape=flat-ar,fs=all,w=1,i=nbc/recdoubling")
	w := newWorld(t, 2, executor.Config{})
	var took [2]int64
	for i, n := range []int{1 << 10, 1 << 12} {
		took[i] = job{w, h, tasks.Request{Coll: tasks.Allreduce, Count: int64(n), Type: tasks.Int32, Op: tasks.Sum}, p}.bind(t, raws(numbers(2, n)), raws(numbers(2, n)))[0].Footprint()
	}
	if more := took[1] - took[0]; more < 4*(1<<12-1<<10) {
		t.Errorf("%d bytes, and %d for four times as many numbers", took[0], took[1])
	}
}

// quarters are the quartiles of a list.
func quarters(list []float64) (q [3]float64) {
	list = slices.Sorted(slices.Values(list))
	for i := range q {
		q[i] = list[(i+1)*len(list)/4]
	}
	return q
}

// watchedCalls returns what makes a batch of allreduces on ranks that are watched.
func watchedCalls(b *testing.B, topo string, size int64, batch, events, every int, timed bool) func() {
	h, p := parse(b, topo, map[bool]string{true: "shape=ar,fs=all,w=1,i=nbc/recdoubling,s=sm/rings", false: "shape=rsag,fs=all,w=1,i=adapt/ring,s=sm"}[size == 8])
	dir := b.TempDir()
	w := newWorld(b, h.Size(), executor.Config{RecorderEvents: events})
	if every > 0 {
		nodes := make([]string, h.Size())
		for r := range nodes {
			nodes[r] = h.NodeName(levels.Rank(r))
		}
		if err := w.Trace(executor.TraceOptions{Dir: dir, Every: every, Job: "bench", Nodes: nodes}); err != nil {
			b.Fatal(err)
		}
	}
	request := tasks.Request{Coll: tasks.Allreduce, Count: size / 4, Type: tasks.Float32, Op: tasks.Sum, InPlace: true}
	bufs := make([][]byte, h.Size())
	for i := range bufs {
		bufs[i] = make([]byte, size)
	}
	runs := make([]*executor.Run, h.Size())
	for r := range runs {
		e := w.Endpoint(levels.Rank(r))
		call, err := job{w, h, request, p}.compile(levels.Rank(r))
		if err != nil {
			b.Fatal(err)
		}
		if call.Recv = bufs[r]; timed {
			call.Tally, call.Trips = e.Tally("allreduce", "p"), 1
		}
		if runs[r], err = e.Comm(0).Bind(call); err != nil {
			b.Fatal(err)
		}
	}
	m := newTeam(h.Size(), func(r int) error {
		for range batch {
			if err := runs[r].Do(context.Background()); err != nil {
				return err
			}
		}
		return nil
	})
	b.Cleanup(func() { m.dismiss(b) })
	return m.once
}

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

// BenchmarkRecorder measures the cost of recording: an allreduce without and with it,
// in turns, so that other work on the machine meets both. It reports the lower
// quartile of each, and their quotient.
func BenchmarkRecorder(b *testing.B) {
	for _, topo := range []string{"1x2", "4x2"} {
		for _, size := range []int64{1 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("op=allreduce/topo=%s/bytes=%s", topo, tasks.FormatBytes(size)), func(b *testing.B) {
				var once [2]func()
				for on, events := range []int{-1, 0} {
					h, p := parse(b, topo, "shape=han,fs=all,w=1,i=adapt/binomial,s=adapt/binomial")
					w := newWorld(b, h.Size(), executor.Config{RecorderEvents: events})
					request := tasks.Request{Coll: tasks.Allreduce, Count: size / 4, Type: tasks.Float32, Op: tasks.Sum, InPlace: true}
					bufs := make([][]byte, h.Size())
					for i := range bufs {
						bufs[i] = make([]byte, size)
					}
					runs := job{w, h, request, p}.bind(b, nil, bufs)
					m := newTeam(h.Size(), func(r int) error { return runs[r].Do(context.Background()) })
					defer m.dismiss(b)
					once[on] = m.once
				}
				const batch = 100
				var took [2][]time.Duration
				for b.Loop() {
					for on := range once {
						began := time.Now()
						for range batch {
							once[on]()
						}
						took[on] = append(took[on], time.Since(began))
					}
				}
				var ns [2]float64
				for on, list := range took {
					slices.Sort(list)
					ns[on] = float64(list[len(list)/4].Nanoseconds()) / batch
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(ns[0], "ns/off")
				b.ReportMetric(ns[1], "ns/on")
				b.ReportMetric(ns[1]/ns[0], "on/off")
			})
		}
	}
}

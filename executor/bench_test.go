package executor_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// grid lowers its task to a wavefront of joins: each waits for the one to its
// left and the one above.
type grid struct{ side int }

func (grid) Name() string            { return "grid" }
func (grid) Doc() string             { return "joins that do nothing, for measuring the walk" }
func (grid) Reach() submodules.Reach { return submodules.Anywhere }
func (grid) Algorithms() []submodules.Algorithm {
	return []submodules.Algorithm{{Name: "grid", Ops: []tasks.Collective{tasks.Reduce}}}
}

func (g grid) Lower(e *submodules.Emitter, _ *submodules.Call) error {
	above := make([]dag.ID, g.side)
	for row := range g.side {
		left := submodules.None
		for col := range above {
			up := submodules.None
			if row > 0 {
				up = above[col]
			}
			left = e.Copy(tasks.Span{Region: tasks.Recv}, tasks.Span{Region: tasks.Recv}, left, up)
			above[col] = left
		}
	}
	return nil
}

// BenchmarkWalk is what a step costs beside its work: the engine's walk of a
// graph of a million steps without bytes, and the bare walk of the same graph,
// last in, first out, with counters and nothing else.
func BenchmarkWalk(b *testing.B) {
	const side = 1000
	h, p := parse(b, "1", "shape=han,fs=all,w=1,i=grid,s=grid")
	r := tasks.Request{Coll: tasks.Allreduce, Count: 1, Type: tasks.Int32, Op: tasks.Sum, InPlace: true}
	on, err := tasks.Hierarchy(r, h, p)
	if err != nil {
		b.Fatal(err)
	}
	prog, err := submodules.CompileFor(r, on, p, 0, submodules.Registry{grid{side}})
	if err != nil {
		b.Fatal(err)
	}
	perStep := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(prog.Len()), "ns/step")
	}
	b.Run("by=engine/steps=1000000", func(b *testing.B) {
		w := newWorld(b, 1, executor.Config{})
		run, err := w.Endpoint(0).Comm(0).Bind(executor.Binding{
			Compiled: submodules.Compiled{Rest: prog}, Recv: make([]byte, 4), Kernel: func(_, _, _ []byte) {}, Request: "grid",
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := run.Do(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		perStep(b)
	})
	b.Run("by=loop/steps=1000000", func(b *testing.B) {
		pending, ready := make([]int32, prog.Len()), make([]dag.ID, 0, prog.Len())
		for b.Loop() {
			walk(prog.Frozen, pending, ready)
		}
		perStep(b)
	})
}

func walk(f *dag.Frozen, pending []int32, ready []dag.ID) {
	copy(pending, f.InDegree())
	for id, n := range pending {
		if n == 0 {
			ready = append(ready, dag.ID(id))
		}
	}
	for len(ready) > 0 {
		id := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, n := range f.Succ(id) {
			pending[n]--
			if pending[n] == 0 {
				ready = append(ready, n)
			}
		}
	}
}

// Messages that nobody has received yet don't slow down those who look for another one:
// the last sent is received first.
func BenchmarkUnreceived(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			w := newWorld(b, 1, executor.Config{})
			c := w.Endpoint(0).Comm(0)
			for b.Loop() {
				for tag := range n {
					if _, err := c.Send(b.Context(), 0, int32(tag), 0, nil); err != nil {
						b.Fatal(err)
					}
				}
				for tag := n - 1; tag >= 0; tag-- {
					t, err := c.Recv(b.Context(), 0, int32(tag), 0, nil)
					if err != nil {
						b.Fatal(err)
					}
					if err := t.Wait(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/message")
		})
	}
}

package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/kernel"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// compileRequest makes a rank's programs of a request, without buffers.
func (b *Bench) compileRequest(r tasks.Request, p tasks.Plan) (executor.Binding, error) {
	x, err := b.binding(r, p, "")
	if err != nil {
		return x, err
	}
	digest := x.Digest
	if x.Compiled, err = submodules.CompileRequest(r, b.topology, p, b.Rank(), b.registry); err != nil {
		return x, err
	}
	x.Digest = digest
	return x, nil
}

// binding returns an executor's binding without programs. part names the part of the request.
func (b *Bench) binding(r tasks.Request, p tasks.Plan, part string) (x executor.Binding, err error) {
	x = executor.Binding{Request: "measure " + r.String() + part}
	if r.Reduces() {
		if x.Kernel, err = kernel.For(r.Op, r.Type); err != nil {
			return x, fmt.Errorf("%v: %w", r, err)
		}
		x.User = r.Op.ID() == tasks.OpUser
	}
	x.Digest = submodules.Digest("measure"+part, r, b.topology, p)
	return x, nil
}

// bound is a program with buffers of its own, and when its tasks ended.
type bound struct {
	run   *executor.Run
	began time.Time
	ends  []time.Duration // by task of the graph, since began; 0 for one without steps
	steps []int32         // by task
	left  []int32         // by task: steps still to end, so the clock is read once
}

// bindBuffers gives programs buffers.
func (b *Bench) bindBuffers(r tasks.Request, x executor.Binding) (*bound, error) {
	send, recv := r.Buffers(b.Rank(), b.comm.Size())
	x.Send, x.Recv = touchedMemory(send), touchedMemory(recv)
	run, err := b.comm.Bind(x)
	return &bound{run: run}, err
}

// bindGraph compiles a graph of at most a pass and notes when its tasks end.
func (b *Bench) bindGraph(g *tasks.Graph, part string) (*bound, error) {
	x, err := b.binding(g.Request, g.Plan, part)
	if err != nil {
		return nil, err
	}
	if x.Rest, err = submodules.Compile(g, b.comm.Size(), b.registry); err != nil {
		return nil, err
	}
	steps := x.Rest.Steps()
	var of *bound
	x.Ended = func(step dag.ID) {
		task := steps[step].Task
		if of.left[task]--; of.left[task] == 0 {
			of.ends[task] = time.Since(of.began)
		}
	}
	if of, err = b.bindBuffers(g.Request, x); err != nil {
		return nil, err
	}
	of.ends, of.steps, of.left = make([]time.Duration, g.Len()), make([]int32, g.Len()), make([]int32, g.Len())
	for i := range steps {
		of.steps[steps[i].Task]++
	}
	return of, nil
}

// page is how far apart writes make memory real. Pages without a write are all the same one, and
// that stays in the cache.
const page = 4 << 10

// touchedMemory is n bytes of memory, nil for none.
func touchedMemory(n int64) []byte {
	if n == 0 {
		return nil
	}
	buf := make([]byte, n)
	for i := int64(0); i < n; i += page {
		buf[i] = 0
	}
	return buf
}

// runOnce runs the program once and returns this rank's time.
func (x *bound) runOnce(ctx context.Context) (time.Duration, error) {
	clear(x.ends)
	copy(x.left, x.steps)
	x.began = time.Now()
	err := x.run.Do(ctx)
	return time.Since(x.began), err
}

package measure

import (
	"context"
	"runtime"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// script is a submodule. It lowers the one task of a flat request to steps between pairs of ranks,
// or on one rank. Engines and simulations run it like collectives.
type script struct {
	name  string // different for different steps
	bytes int64  // of each rank's buffer
	adds  bool   // it has reductions
	emit  func(e *submodules.Emitter, c *submodules.Call)
}

var _ submodules.Submodule = (*script)(nil)

// scriptName is the word for scripts in plans.
const scriptName = "script"

// Name is the word in plans.
func (*script) Name() string { return scriptName }

// Doc says what it is.
func (*script) Doc() string { return "steps between pairs of ranks, to be measured" }

// Reach says that it works over links of any kind.
func (*script) Reach() submodules.Reach { return submodules.Anywhere }

// Algorithms lists the only one.
func (*script) Algorithms() []submodules.Algorithm {
	return []submodules.Algorithm{{Name: scriptName, Ops: []tasks.Collective{tasks.Bcast, tasks.Reduce}}}
}

// Lower emits the script's steps.
func (s *script) Lower(e *submodules.Emitter, c *submodules.Call) error {
	s.emit(e, c)
	return nil
}

// engineRequest returns the script's request for an engine. A bcast's buffer is one of the
// caller's, like those of collectives; a reduction has a kernel.
func (s *script) engineRequest() tasks.Request {
	if s.adds {
		return tasks.Request{Coll: tasks.Reduce, Type: tasks.Float32, Op: tasks.Sum, Count: 1}
	}
	return tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: s.bytes}
}

// planOn returns the script's plan on a topology.
func (s *script) planOn(t *levels.Topology) tasks.Plan {
	p := tasks.Plan{Shape: tasks.Flat, Segment: tasks.Whole, Window: 1}
	for k := range t.Depth() {
		p = p.Set(string(t.Level(k).Symbol), tasks.Choice{Submodule: scriptName, Algorithm: scriptName})
	}
	return p
}

// bindScript compiles a script for this rank and gives it buffers.
func (b *Bench) bindScript(s *script) (*bound, error) {
	r, p := s.engineRequest(), s.planOn(b.topology)
	x, err := b.binding(r, p, " "+s.name)
	if err != nil {
		return nil, err
	}
	if x.Compiled, err = submodules.CompileRequest(r, b.topology, p, b.Rank(), submodules.Registry{s}); err != nil {
		return nil, err
	}
	return b.bindBuffers(r, x)
}

// times measures by the wall clock, see stopwatch.
func (b *Bench) times(ctx context.Context, stop stats.Stop, scripts ...*script) ([]scriptTimes, error) {
	return b.timesBy(ctx, (*bound).total, stop, scripts)
}

// processorTimes measures by the processors' clocks, see stopwatch.
func (b *Bench) processorTimes(ctx context.Context, stop stats.Stop, scripts ...*script) ([]scriptTimes, error) {
	return b.timesBy(ctx, (*bound).processor, stop, scripts)
}

// timesBy runs scripts in turns by a clock.
func (b *Bench) timesBy(ctx context.Context, clock func(*bound, context.Context) ([]float64, error), stop stats.Stop, scripts []*script) ([]scriptTimes, error) {
	var subjects []subject
	for _, s := range scripts {
		x, err := b.bindScript(s)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, func(ctx context.Context) ([]float64, error) { return clock(x, ctx) })
	}
	all, err := b.repeatInTurns(ctx, stop, subjects...)
	if err != nil {
		return nil, err
	}
	found := make([]scriptTimes, len(scripts))
	if b.Rank() == 0 {
		for i, s := range all {
			found[i].Slowest = stats.Summarize(s.totals())
			for rank := range b.comm.Size() {
				found[i].Ranks = append(found[i].Ranks, stats.Summarize(s.column(levels.Rank(rank), 0)))
			}
		}
	}
	return found, b.shareJSON(ctx, &found)
}

// processor is the subject of the rank's processor time.
func (x *bound) processor(ctx context.Context) ([]float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, known := threadTime()
	d, err := x.runOnce(ctx)
	if after, _ := threadTime(); known {
		d = after - before
	}
	return []float64{float64(d)}, err
}

// scriptTimes is how long a script took.
type scriptTimes struct {
	Slowest costs.Summary   // of the slowest rank in each repetition
	Ranks   []costs.Summary // by rank
}

// simulateOn runs the script on a machine.
func (s *script) simulateOn(t *levels.Topology, m *machine.Machine, o sim.Options) (*sim.Result, error) {
	job, err := sim.Compile(s.engineRequest(), t, s.planOn(t), submodules.Registry{s})
	if err != nil {
		return nil, err
	}
	return job.Run(m, o)
}

// times simulates scripts, see stopwatch. One sample of each says all.
func (s *Simulated) times(ctx context.Context, _ stats.Stop, scripts ...*script) ([]scriptTimes, error) {
	return s.timesBy(ctx, func(r *sim.Result) []sim.Time { return r.End }, scripts)
}

// processorTimes is the busy time of processors, see stopwatch.
func (s *Simulated) processorTimes(ctx context.Context, _ stats.Stop, scripts ...*script) ([]scriptTimes, error) {
	return s.timesBy(ctx, func(r *sim.Result) []sim.Time { return r.Busy }, scripts)
}

func (s *Simulated) timesBy(ctx context.Context, clock func(*sim.Result) []sim.Time, scripts []*script) ([]scriptTimes, error) {
	var found []scriptTimes
	for _, one := range scripts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := one.simulateOn(s.topology, s.machine, sim.Options{})
		if err != nil {
			return nil, err
		}
		var t scriptTimes
		for _, at := range clock(r) {
			t.Ranks = append(t.Ranks, stats.Summarize([]float64{at.Nanoseconds()}))
		}
		t.Slowest = stats.Summarize([]float64{slices.Max(clock(r)).Nanoseconds()})
		found = append(found, t)
	}
	return found, nil
}

// pair is two ranks that speak with each other.
type pair struct{ a, b levels.Rank }

// peerOf returns the other rank, and whether this one is the first; -1 if it is none of
// them.
func (p pair) peerOf(c *submodules.Call) (peer levels.Rank, first bool) {
	switch c.Group.Ranks[c.Me] {
	case p.a:
		return p.b, true
	case p.b:
		return p.a, false
	}
	return -1, false
}

// pairScript returns a script of pairs of ranks. emit is called for each pair of a rank.
func pairScript(name string, bytes int64, pairs []pair, emit func(e *submodules.Emitter, at tasks.Span, peer levels.Rank, first bool)) *script {
	return &script{name: name, bytes: bytes, emit: func(e *submodules.Emitter, c *submodules.Call) {
		for _, p := range pairs {
			if peer, first := p.peerOf(c); peer >= 0 {
				emit(e, c.Dst, peer, first)
			}
		}
	}}
}

// turnScript returns round trips of n bytes between a and b of each pair. A rank waits for the
// next message while it sends one: so credits are there before they are needed.
func turnScript(name string, pairs []pair, n int64, rounds int) *script {
	return pairScript(name, 2*n, pairs, func(e *submodules.Emitter, at tasks.Span, peer levels.Rank, first bool) {
		send, recv := at.Cut(0, n), at.Cut(n, n)
		got := submodules.None
		for range rounds {
			if first {
				e.Send(peer, send, got)
				got = e.Recv(peer, recv, got)
			} else {
				got = e.Recv(peer, recv, got)
				e.Send(peer, send, got)
			}
		}
	})
}

// streamScript returns count messages of n bytes from a to b of each pair, both ways if asked, and
// an empty answer to the last one. They are received at so many places in turn. If only some
// messages wait for credit, there are as many places as messages: different ranks write those at
// the same time.
func streamScript(name string, pairs []pair, n int64, count, places int, both bool) *script {
	end := int64(1+places) * n
	return pairScript(name, end+2, pairs, func(e *submodules.Emitter, at tasks.Span, peer levels.Rank, first bool) {
		isSource, isSink := first || both, !first || both
		var got []dag.ID
		for i := 0; isSource && i < count; i++ {
			e.Send(peer, at.Cut(0, n))
		}
		for i := 0; isSink && i < count; i++ {
			got = append(got, e.Recv(peer, at.Cut(n+int64(i%places)*n, n)))
		}
		if isSource {
			e.Recv(peer, at.Cut(end, 1))
		}
		if isSink {
			e.Send(peer, at.Cut(end+1, 1), e.Join(got...))
		}
	})
}

// sendScript returns count messages of n bytes from a to b of each pair, all at once.
func sendScript(name string, pairs []pair, n int64, count int) *script {
	return pairScript(name, 2*n, pairs, func(e *submodules.Emitter, at tasks.Span, peer levels.Rank, first bool) {
		for range count {
			if first {
				e.Send(peer, at.Cut(0, n))
			} else {
				e.Recv(peer, at.Cut(n, n))
			}
		}
	})
}

// readScript returns a chain of copies by a of b's memory.
func readScript(name string, p pair, n int64, count int) *script {
	return pairScript(name, 2*n, []pair{p}, func(e *submodules.Emitter, at tasks.Span, peer levels.Rank, first bool) {
		if !first {
			shared, backup := e.Share(at.Cut(0, n))
			e.Expose(peer, at.Cut(0, n), backup, shared)
			e.Await(peer) // it must stay until all is read
			return
		}
		told := e.Await(peer)
		last := told
		for range count {
			last = e.Copy(at.Cut(n, n), submodules.Exposed(told, 0, n), last)
		}
		e.Notify(peer, tasks.Span{}, last)
	})
}

// copyOver emits a chain of copies.
func copyOver(e *submodules.Emitter, n int64, count int) {
	to, from, last := e.Scratch(n), e.Scratch(n), submodules.None
	for range count {
		last = e.Copy(to, from, last)
	}
}

// reduceOver emits a chain of reductions of n bytes.
func reduceOver(e *submodules.Emitter, n int64, count int) {
	to, from, last := e.Scratch(n), e.Scratch(n), submodules.None
	for range count {
		last = e.Reduce(to, to, from, last)
	}
}

// emitJoins emits a chain of steps without work.
func emitJoins(e *submodules.Emitter, count int) {
	first := e.Copy(e.Scratch(1), e.Scratch(1))
	last := e.Copy(e.Scratch(1), e.Scratch(1))
	for range count {
		last = e.Join(first, last)
	}
}

package measure

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Simulated gives the times of a described machine in place of measured ones: what a
// [Bench] on it would find, without ranks. One Simulated stands for all ranks. It is
// safe for concurrent use.
type Simulated struct {
	topology *levels.Topology
	machine  *machine.Machine
	registry submodules.Registry
	spent    atomic.Int64 // ns, see Spent
}

// NewSimulated returns a bench for the ranks of t on a machine.
func NewSimulated(t *levels.Topology, m *machine.Machine, reg submodules.Registry) *Simulated {
	return &Simulated{topology: t, machine: m, registry: reg}
}

// Spent returns how long all measurements so far would have taken on the machine, with as
// many samples as a [Bench] takes at least.
func (s *Simulated) Spent() time.Duration { return time.Duration(s.spent.Load()) }

// Topology is where the ranks would be.
func (s *Simulated) Topology() *levels.Topology { return s.topology }

// Rank is 0, the rank that has the results of a [Bench].
func (s *Simulated) Rank() levels.Rank { return 0 }

// Beside calls f for all numbers below n, as many at the same time as there are processors,
// and returns when all calls have.
func (s *Simulated) Beside(n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				f(int(i - 1))
			}
		})
	}
	all.Wait()
}

// realSamples is how many samples a bench takes at least, with those that don't count.
const realSamples = warm + 5

// noisySamples is how many samples are taken on a machine with noise. Without noise all
// would be equal, and one is taken.
const noisySamples = 5

// Collective simulates a request. Stop doesn't matter: no sample takes time.
func (s *Simulated) Collective(ctx context.Context, r tasks.Request, p tasks.Plan, _ stats.Stop) (Timing, error) {
	all, err := s.sample(ctx, r, p, 1, nil)
	if err != nil {
		return Timing{}, fmt.Errorf("measure: %w", err)
	}
	t := timing(all, s.topology.Size())
	for _, ns := range t.Series {
		t.Spent += ns * realSamples / float64(len(t.Series))
	}
	return t, nil
}

// Pipeline is [Bench.Pipeline] on simulated time.
func (s *Simulated) Pipeline(ctx context.Context, r tasks.Request, p tasks.Plan, _ stats.Stop) (pipe costs.Pipeline, err error) {
	one, many, err := pipelineGraphs(r, p, s.topology, 0)
	if err != nil {
		return pipe, err
	}
	var all [2]samples
	for i, g := range []*tasks.Graph{one, many} {
		all[i], err = s.sample(ctx, g.Request, g.Plan, 1+g.Segments, func(_ int, values []float64, e sim.Event) {
			values[1+e.Segment] = max(values[1+e.Segment], e.End.Nanoseconds())
		})
		if err != nil {
			return pipe, fmt.Errorf("measure %v: %w", r, err)
		}
		for _, ranks := range all[i] {
			for _, values := range ranks {
				accumulate(values)
			}
		}
	}
	return pipelineOf(all[0], all[1], many), nil
}

// Stages is [Bench.Stages] on simulated time.
func (s *Simulated) Stages(ctx context.Context, r tasks.Request, p tasks.Plan, _ stats.Stop, book *costs.Book) ([]costs.Series, error) {
	return stagesOf(r, p, s.topology, 0, book, func(l *line, missing int64) (findings, bool, error) {
		if missing == 0 {
			return findings{}, false, nil
		}
		f, err := s.run(ctx, l)
		return f, true, err
	})
}

// run simulates a line.
func (s *Simulated) run(ctx context.Context, l *line) (f findings, err error) {
	stages := make([][]tasks.Stage, s.topology.Size())
	ends := make([][]float64, len(stages)) // by rank and task
	columns := 1
	for rank := range stages {
		g, err := tasks.Expand(l.request, s.topology, l.plan, levels.Rank(rank))
		if err != nil {
			return f, err
		}
		if stages[rank], err = g.Stages(); err != nil {
			return f, err
		}
		ends[rank] = make([]float64, g.Len())
		columns = 1 + g.Segments + max(len(g.Phases)-1, 0)
	}
	all := samples{}
	for range s.repetitions() {
		one, err := s.sampleOnce(ctx, l.request, l.plan, columns, uint64(len(all)+1), func(rank int, _ []float64, e sim.Event) {
			ends[rank][e.Task] = max(ends[rank][e.Task], e.End.Nanoseconds())
		})
		if err != nil {
			return f, err
		}
		for rank := range one {
			one[rank] = stageTimes(one[rank][0], func(id dag.ID) float64 { return ends[rank][id] }, stages[rank], columns)
			clear(ends[rank])
		}
		all = append(all, one)
	}
	return l.findings(all), nil
}

// repetitions returns how many samples say all.
func (s *Simulated) repetitions() int {
	if s.machine.Noise > 0 {
		return noisySamples
	}
	return 1
}

// sample simulates a request as often as there is something new in it. Each rank's values
// begin with when it ended, ns; watch fills in the others, as many as columns are left.
func (s *Simulated) sample(ctx context.Context, r tasks.Request, p tasks.Plan, columns int, watch func(rank int, values []float64, e sim.Event)) (samples, error) {
	return s.sampleJob(s.compilation(ctx, r, p), columns, watch)
}

// compilation returns what compiles a request, until ctx ends.
func (s *Simulated) compilation(ctx context.Context, r tasks.Request, p tasks.Plan) *sim.Compilation {
	return &sim.Compilation{Request: r, Topology: s.topology, Plan: p, Registry: s.registry, Check: ctx.Err}
}

// sampleJob is sample of any compilation. Whatever ends this ends the simulations.
func (s *Simulated) sampleJob(c *sim.Compilation, columns int, watch func(rank int, values []float64, e sim.Event)) (all samples, err error) {
	job, err := c.Job()
	if err != nil {
		return nil, err
	}
	for range s.repetitions() {
		one, err := s.runJob(job, c.Check, columns, uint64(len(all)+1), watch)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// sampleOnce is one sample, by rank.
func (s *Simulated) sampleOnce(ctx context.Context, r tasks.Request, p tasks.Plan, columns int, seed uint64, watch func(rank int, values []float64, e sim.Event)) ([][]float64, error) {
	job, err := s.compilation(ctx, r, p).Job()
	if err != nil {
		return nil, err
	}
	return s.runJob(job, ctx.Err, columns, seed, watch)
}

// runJob is one sample of a job, by rank. An error of check ends it.
func (s *Simulated) runJob(job *sim.Job, check func() error, columns int, seed uint64, watch func(rank int, values []float64, e sim.Event)) ([][]float64, error) {
	values := make([][]float64, s.topology.Size())
	for rank := range values {
		values[rank] = make([]float64, columns)
	}
	options := sim.Options{Seed: seed, Check: func(int64) error { return check() }}
	if watch != nil {
		options.Watch = func(e sim.Event) { watch(int(e.Rank), values[e.Rank], e) }
	}
	result, err := job.Run(s.machine, options)
	if err != nil {
		return nil, err
	}
	for rank, end := range result.End {
		values[rank][0] = end.Nanoseconds()
	}
	s.spent.Add(int64(result.Time.Nanoseconds()) * realSamples / int64(s.repetitions()))
	return values, nil
}

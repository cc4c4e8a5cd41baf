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

// Simulated gives the times of a described machine in place of measured ones, as a [Bench] on it
// would find them. It needs no ranks. One Simulated stands for all ranks. It is safe for concurrent
// use.
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

// Rank is 0, the rank with the results of a [Bench].
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

// realSamples is how many samples a bench takes at least, with the uncounted ones.
const realSamples = warm + 5

// noisySamples is how many samples are taken on a machine with noise. Without noise all
// would be equal, and one is taken.
const noisySamples = 5

// Collective simulates a request. Stop doesn't matter: no sample takes time.
func (s *Simulated) Collective(ctx context.Context, r tasks.Request, p tasks.Plan, _ stats.Stop) (Timing, error) {
	all, err := s.sample(s.compilation(ctx, r, p), 1, nil)
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
		if all[i], err = s.sampleSegments(s.compilation(ctx, g.Request, g.Plan), g.Segments); err != nil {
			return pipe, fmt.Errorf("measure %v: %w", r, err)
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
	tasksOfRank, columns := 0, 0
	for rank := range stages {
		g, err := tasks.Expand(l.request, s.topology, l.plan, levels.Rank(rank))
		if err != nil {
			return f, err
		}
		if stages[rank], err = g.Stages(); err != nil {
			return f, err
		}
		tasksOfRank, columns = max(tasksOfRank, g.Len()), stageColumns(g)
	}
	all, err := s.sample(s.compilation(ctx, l.request, l.plan), 1+tasksOfRank, func(values []float64, e sim.Event) {
		values[1+e.Task] = max(values[1+e.Task], e.End.Nanoseconds())
	})
	if err != nil {
		return f, err
	}
	for _, ranks := range all {
		for rank, ends := range ranks {
			ranks[rank] = stageTimes(ends[0], func(id dag.ID) float64 { return ends[1+id] }, stages[rank], columns)
		}
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

// compilation returns the compilation of a request. It ends with ctx.
func (s *Simulated) compilation(ctx context.Context, r tasks.Request, p tasks.Plan) *sim.Compilation {
	return &sim.Compilation{Request: r, Topology: s.topology, Plan: p, Registry: s.registry, Check: ctx.Err}
}

// sample simulates a request as often as there is something new in it, until its check fails. Each
// rank's values begin with its end, ns; watch fills in the other columns.
func (s *Simulated) sample(c *sim.Compilation, columns int, watch func(values []float64, e sim.Event)) (all samples, err error) {
	job, err := c.Job()
	if err != nil {
		return nil, err
	}
	for range s.repetitions() {
		values := make([][]float64, s.topology.Size())
		for rank := range values {
			values[rank] = make([]float64, columns)
		}
		options := sim.Options{Seed: uint64(len(all) + 1), Check: func(int64) error { return c.Check() }}
		if watch != nil {
			options.Watch = func(e sim.Event) { watch(values[e.Rank], e) }
		}
		result, err := job.Run(s.machine, options)
		if err != nil {
			return nil, err
		}
		for rank, end := range result.End {
			values[rank][0] = end.Nanoseconds()
		}
		s.spent.Add(int64(result.Time.Nanoseconds()) * realSamples / int64(s.repetitions()))
		all = append(all, values)
	}
	return all, nil
}

// sampleSegments samples when each of so many segments was complete.
func (s *Simulated) sampleSegments(c *sim.Compilation, segments int) (samples, error) {
	all, err := s.sample(c, 1+segments, func(values []float64, e sim.Event) {
		values[1+e.Segment] = max(values[1+e.Segment], e.End.Nanoseconds())
	})
	for _, ranks := range all {
		for _, values := range ranks {
			accumulate(values)
		}
	}
	return all, err
}

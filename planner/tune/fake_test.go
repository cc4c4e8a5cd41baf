package tune_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
)

// fakeMeter knows what everything takes by a formula: no clock, no ranks.
type fakeMeter struct {
	on                                  *levels.Topology
	collectives, pipelines, runs, units int
	err                                 error // of plans with a chain; nil: none

	bend  func(c tasks.Choice, segment int64) float64 // times what the formula gives for a task; nil: 1
	rules map[tasks.Request]string                    // plans that take half the time
	lie   float64                                     // times that for pipelines; 0: 1
	noise *rand.Rand                                  // of a tenth in each sample; nil: none
}

// samples are five of a time.
func (f *fakeMeter) samples(ns float64) []float64 {
	series := []float64{ns * 1.01, ns * 0.99, ns, ns, ns * 1.5}
	for i := range series {
		if f.noise != nil {
			series[i] = ns * (1 + f.noise.NormFloat64()/10)
		}
	}
	return series
}

var _ tune.Meter = (*fakeMeter)(nil)

// task is what one task takes on a segment, ns: rounds of latency and bytes, those
// of a chain overlapping.
func (f *fakeMeter) task(g *tasks.Graph, ph tasks.Phase, segment int64) float64 {
	c, _ := g.Plan.For(ph.Kind)
	ranks := 0
	for _, group := range g.On.Groups(ph.Level) {
		ranks = max(ranks, len(group.Ranks))
	}
	rounds := 0.0
	for n := 1; n < ranks; n *= 2 {
		rounds++
	}
	if c.Algorithm == "chain" || c.Algorithm == "linear" {
		rounds = float64(ranks - 1)
	}
	latency, perByte := 50e3, 1.0
	if g.On.WithinNodes(ph.Level) {
		latency, perByte = 1e3, 0.2
	}
	if c.Algorithm == "chain" && c.Inner > 0 {
		perByte /= 2
	}
	factor := 1.0
	if f.bend != nil {
		factor = f.bend(c, segment)
	}
	return factor * (rounds*latency + (1+rounds/2)*perByte*float64(segment) + 100*float64(len(c.Submodule)+len(c.Algorithm)))
}

// parts are the times of the phases of one segment, and the longest of them.
func (f *fakeMeter) parts(r tasks.Request, p tasks.Plan) (fill, slowest float64, phases int) {
	g, err := tasks.Expand(costs.First(r, p, 1), f.on, p, 0)
	if err != nil {
		panic(err)
	}
	for _, ph := range g.Phases {
		one := f.task(g, ph, min(p.Segment, r.Bytes()))
		if p.Shape == tasks.HanLockstep {
			one *= 1.1
		}
		fill, slowest = fill+one, max(slowest, one)
	}
	return fill, slowest, len(g.Phases)
}

func (f *fakeMeter) time(r tasks.Request, p tasks.Plan) float64 {
	fill, stable, _ := f.parts(r, p)
	ns := fill + float64(costs.Segments(r, p)-1)*stable
	if f.rules[r] == p.String() {
		ns /= 2
	}
	return ns
}

func (f *fakeMeter) Collective(_ context.Context, r tasks.Request, p tasks.Plan, _ stats.Stop) (measure.Timing, error) {
	f.collectives++
	if f.err != nil && strings.Contains(p.String(), "chain") {
		return measure.Timing{}, fmt.Errorf("lower: %w", f.err)
	}
	series := f.samples(f.time(r, p))
	return measure.Timing{Series: series, Slowest: stats.Summarize(series)}, nil
}

func (f *fakeMeter) Pipeline(_ context.Context, r tasks.Request, p tasks.Plan, _ stats.Stop) (costs.Pipeline, error) {
	f.pipelines++
	fill, stable, phases := f.parts(r, p)
	factor := costs.Median(f.samples(1))
	if f.lie > 0 {
		factor *= f.lie
	}
	fill, stable = fill*factor, stable*factor
	done := make([]float64, min(costs.Segments(r, p), int64(phases+costs.Extra)))
	for i := range done {
		done[i] = fill + float64(i)*stable
	}
	end := done[len(done)-1]
	return costs.Pipeline{
		Whole: stats.Summarize([]float64{end, end * 1.02}), Segments: len(done), Phases: phases,
		Leaders: []costs.Completion{costs.NewCompletion(fill, done, end, p.Window)},
	}, nil
}

// Stages fills in all stages of graphs of up to as many segments as phases, like
// the real one.
func (f *fakeMeter) Stages(_ context.Context, r tasks.Request, p tasks.Plan, _ stats.Stop, book *costs.Book) ([]costs.Series, error) {
	f.runs++
	_, _, phases := f.parts(r, p)
	for u := range min(int64(phases), costs.Segments(r, p)) {
		for rank := range levels.Rank(f.on.Size()) {
			g, err := tasks.Expand(costs.First(r, p, u+1), f.on, p, rank)
			if err != nil {
				return nil, err
			}
			stages, keys, err := costs.StageKeys(g)
			if err != nil {
				return nil, err
			}
			for i, s := range stages {
				ns := 0.0
				for _, id := range s.Tasks {
					ns = max(ns, 1.1*f.task(g, g.Phases[g.Node(id).Phase], p.Segment))
				}
				leaders := []float64{}
				for range g.On.Groups(0) {
					leaders = append(leaders, ns)
				}
				book.Add(keys[i], costs.Cost{Summary: stats.Summarize([]float64{ns}), Leaders: leaders})
			}
		}
	}
	return nil, nil
}

// requests are all pairs of collectives and sizes, which are float32.
func requests(colls string, sizes ...int64) (all []tasks.Request) {
	for _, name := range strings.Split(colls, ",") {
		coll, err := tasks.ParseCollective(name)
		if err != nil {
			panic(err)
		}
		for _, n := range sizes {
			r := tasks.Request{Coll: coll, Count: n / 4, Type: tasks.Float32}
			if r.Reduces() {
				r.Op = tasks.Sum
			}
			if coll == tasks.Barrier {
				r = tasks.Request{Coll: coll}
			}
			all = append(all, r)
			if coll == tasks.Barrier {
				break
			}
		}
	}
	return all
}

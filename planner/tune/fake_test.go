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
	on                 *levels.Topology
	collectives, units int
	err                error // of plans with a chain; nil: none

	bend  func(c tasks.Choice, segment int64) float64 // times what the formula gives for a task; nil: 1
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

package tune

import (
	"context"
	"fmt"
	"math"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/derived"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Experimenter is a [Meter] that runs the experiments of package derived, too. All ranks
// call it alike.
type Experimenter interface {
	Gamma(ctx context.Context, most int, bytes int64, stop stats.Stop) ([]float64, error)
	Gather(ctx context.Context, gathered int64, stop stats.Stop) (derived.Gather, error)
	Followed(ctx context.Context, r tasks.Request, p tasks.Plan, gathered int64, stop stats.Stop) (costs.Summary, error)
}

var (
	_ Experimenter = (*measure.Bench)(nil)
	_ Experimenter = (*measure.Simulated)(nil)
)

// Estimation is how the parameters of bcasts are estimated on a machine.
type Estimation struct {
	Topology *levels.Topology
	Registry submodules.Registry
	Segment  int64 // bytes of a piece, 1 or more
	Most     int64 // bytes of the largest message
	Stop     stats.Stop
}

// Limits of the experiments.
const (
	experiments  = 10    // sizes of each algorithm, as the paper has
	gatheredSize = 256   // bytes of each rank for the root after a bcast
	gammaMost    = 8     // ranks in measurements of γ; beyond, it is a line
	longestCall  = 200e6 // ns for the largest message: a longer one tells nothing new
)

// grounds are measurements behind the experiments with all algorithms.
type grounds struct {
	gamma   derived.Gamma
	message float64 // time of one message, ns
	gather  derived.Gather
}

// measureGrounds measures γ and the gather.
func (o *Estimation) measureGrounds(ctx context.Context, m Experimenter) (g grounds, err error) {
	times, err := m.Gamma(ctx, gammaMost, o.Segment, o.Stop)
	if err != nil {
		return g, err
	}
	if g.gamma, err = derived.NewGamma(times); err != nil {
		return g, err
	}
	g.message = times[0]
	g.gather, err = m.Gather(ctx, gatheredSize, o.Stop)
	return g, err
}

// measureAlgorithm measures one algorithm.
func (o *Estimation) measureAlgorithm(ctx context.Context, m Experimenter, model derived.Model, g *grounds) (a derived.Algorithm, all []derived.Experiment, err error) {
	for _, bytes := range o.sizesFor(model, g.gamma, g.message) {
		r := tasks.Request{Coll: tasks.Bcast, Type: tasks.Uint8, Count: bytes}
		p := model.Plan(o.Topology, o.Segment)
		s, err := m.Followed(ctx, r, p, gatheredSize, o.Stop)
		if err != nil {
			return a, nil, err
		}
		all = append(all, derived.Experiment{Request: r, Plan: p, Gather: g.gather, NS: s.P50})
	}
	if a.Line, err = derived.Estimate(o.Topology, o.Registry, g.gamma, 0, all); err != nil {
		return a, nil, err
	}
	a.Off, err = derived.Deviations(o.Topology, o.Registry, g.gamma, a.Line, all)
	return a, all, err
}

// sizesFor lists the sizes for an algorithm: a byte and parts of a segment, to tell α from β, and then
// its multiples by equal factors, up to a message of [longestCall].
func (o *Estimation) sizesFor(model derived.Model, g derived.Gamma, message float64) (all []int64) {
	least := o.Segment
	most := o.Most
	for most > 2*least && message*model.Coeff(o.Topology.Size(), most, least, g).Alpha > longestCall {
		most = most * 3 / 4
	}
	if !model.Segmented { // its one message is that much longer
		most = min(most, max(2*least, int64(float64(least)*longestCall/message/model.Coeff(o.Topology.Size(), most, 0, g).Alpha)))
	}
	all = append(all, 1, max(1, least/8), max(1, least/2))
	factor := math.Pow(float64(most)/float64(least), 1/float64(experiments-len(all)-1))
	for i := range experiments - len(all) {
		n := max(1, math.Round(math.Pow(factor, float64(i))))
		if n > 1 {
			n += math.Mod(n, 2) // halves are whole segments then
		}
		all = append(all, int64(n)*least)
	}
	return all
}

// Estimate runs all experiments. It returns them by algorithm.
func (o *Estimation) Estimate(ctx context.Context, m Meter) (*derived.Parameters, map[string][]derived.Experiment, error) {
	x, ok := m.(Experimenter)
	if !ok {
		return nil, nil, errNoExperiments
	}
	g, err := o.measureGrounds(ctx, x)
	if err != nil {
		return nil, nil, err
	}
	p, all := &derived.Parameters{Gamma: g.gamma, Algorithms: map[string]derived.Algorithm{}}, map[string][]derived.Experiment{}
	for _, model := range derived.Models() {
		one, some, err := o.measureAlgorithm(ctx, x, model, &g)
		if err != nil {
			return nil, nil, fmt.Errorf("experiments with %s: %w", model.Algorithm, err)
		}
		p.Algorithms[model.Algorithm], all[model.Algorithm] = one, some
	}
	return p, all, nil
}

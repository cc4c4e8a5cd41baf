package tune_test

import (
	"context"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/tasks"
)

// Task is tasks by themselves, as their formula has them.
func (f *fakeMeter) Task(_ context.Context, r tasks.Request, p tasks.Plan, phases []int, segments int64, _ stats.Stop) (costs.Pipeline, error) {
	f.units++
	if f.err != nil {
		return costs.Pipeline{}, f.err
	}
	g, err := tasks.Expand(costs.First(r, p, 1), f.on, p, 0)
	if err != nil {
		return costs.Pipeline{}, err
	}
	fill, slowest := 0.0, 0.0
	for _, at := range phases {
		one := costs.Median(f.samples(f.task(g, g.Phases[at], min(p.Segment, r.Bytes()))))
		fill, slowest = fill+one, max(slowest, one)
	}
	done := make([]float64, segments)
	for i := range done {
		done[i] = fill + float64(i)*slowest
	}
	end := done[segments-1]
	alone := 0.0
	if segments == 1 {
		alone = end
	}
	return costs.Pipeline{
		Whole: stats.Summarize([]float64{end, end}), Segments: int(segments), Phases: len(phases),
		Leaders: []costs.Completion{costs.NewCompletion(alone, done, end, p.Window)},
	}, nil
}

package measure

import (
	"context"
	"fmt"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Pipeline times when segments complete in a request with a dataflow shape: in
// its first segments, [costs.Extra] more than there are phases, or all if it has
// fewer.
func (b *Bench) Pipeline(ctx context.Context, r tasks.Request, p tasks.Plan, stop costs.Stop) (pipe costs.Pipeline, err error) {
	if p.Shape == tasks.HanLockstep {
		return pipe, fmt.Errorf("measure %v: plan %v has stages, not segments that flow: that is for Stages", r, p)
	}
	one, err := tasks.Expand(costs.First(r, p, 1), b.topology, p, b.Rank())
	if err != nil {
		return pipe, fmt.Errorf("measure: %w", err)
	}
	phases := len(one.Phases)
	g, err := tasks.Expand(costs.First(r, p, int64(phases+costs.Extra)), b.topology, p, b.Rank())
	if err != nil {
		return pipe, fmt.Errorf("measure: %w", err)
	}
	x, err := b.bindGraph(g, "")
	if err != nil {
		return pipe, fmt.Errorf("measure: %w", err)
	}
	all, err := b.repeat(ctx, stop, func(ctx context.Context) ([]float64, error) { return x.completions(ctx, g) })
	if err != nil {
		return pipe, fmt.Errorf("measure %v: %w", r, err)
	}
	if b.Rank() == 0 {
		pipe = pipeline(all[0], g, phases)
	}
	return pipe, b.share(ctx, &pipe)
}

// completions runs once and says when each segment was complete on this rank: by
// the last of its tasks, and not before the segments before it.
func (x *bound) completions(ctx context.Context, g *tasks.Graph) ([]float64, error) {
	total, err := x.do(ctx)
	values := make([]float64, 1+g.Segments)
	values[0] = float64(total)
	for id, end := range x.ends {
		at := 1 + int(g.Node(dag.ID(id)).Segment)
		values[at] = max(values[at], float64(end))
	}
	for i := 2; i < len(values); i++ {
		values[i] = max(values[i], values[i-1])
	}
	return values, err
}

// pipeline derives each leader's part from medians over repetitions.
func pipeline(s samples, g *tasks.Graph, phases int) costs.Pipeline {
	p := costs.Pipeline{Whole: costs.Summarize(s.totals()), Segments: g.Segments, Phases: phases}
	for _, group := range g.On.Groups(0) {
		done := make([]float64, g.Segments)
		for i := range done {
			done[i] = costs.Median(s.column(int(group.Lead()), 1+i))
		}
		p.Leaders = append(p.Leaders, costs.NewCompletion(done, s.end(group)))
	}
	return p
}

// end is when the last rank of a group ends.
func (s samples) end(g *levels.Group) float64 {
	ns := 0.0
	for _, r := range g.Ranks {
		ns = max(ns, costs.Median(s.column(int(r), 0)))
	}
	return ns
}

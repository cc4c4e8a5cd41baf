package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Pipeline times when segments complete in a request with a dataflow shape: one
// by itself, and its first ones, [costs.Extra] more than there are phases, or all
// if it has fewer. stop's budget is for both.
func (b *Bench) Pipeline(ctx context.Context, r tasks.Request, p tasks.Plan, stop stats.Stop) (pipe costs.Pipeline, err error) {
	one, many, err := pipelineGraphs(r, p, b.topology, b.Rank())
	if err != nil {
		return pipe, err
	}
	var subjects []subject
	for _, g := range []*tasks.Graph{one, many} {
		x, err := b.bindGraph(g, "")
		if err != nil {
			return pipe, fmt.Errorf("measure: %w", err)
		}
		subjects = append(subjects, func(ctx context.Context) ([]float64, error) { return x.segmentTimes(ctx, g) })
	}
	stop = stop.WithDefaults()
	stop.Budget /= time.Duration(len(subjects)) // for both together
	all, err := b.repeatInTurns(ctx, stop, subjects...)
	if err != nil {
		return pipe, fmt.Errorf("measure %v: %w", r, err)
	}
	if b.Rank() == 0 {
		pipe = pipelineOf(all[0], all[1], many)
	}
	return pipe, b.shareJSON(ctx, &pipe)
}

// segmentTimes runs once and says when each segment was complete on this rank: by
// the last of its tasks, and not before the segments before it.
func (x *bound) segmentTimes(ctx context.Context, g *tasks.Graph) ([]float64, error) {
	total, err := x.runOnce(ctx)
	values := make([]float64, 1+g.Segments)
	values[0] = float64(total)
	for id, end := range x.ends {
		at := 1 + int(g.Node(dag.ID(id)).Segment)
		values[at] = max(values[at], float64(end))
	}
	accumulate(values)
	return values, err
}

// accumulate makes no segment complete before the one before it. The first value is the
// rank's time.
func accumulate(values []float64) {
	for i := 2; i < len(values); i++ {
		values[i] = max(values[i], values[i-1])
	}
}

// pipelineGraphs returns a rank's graphs for a pipeline: of one segment, and of [costs.Extra] more
// than there are phases, or of all if there are fewer.
func pipelineGraphs(r tasks.Request, p tasks.Plan, t *levels.Topology, rank levels.Rank) (one, many *tasks.Graph, err error) {
	if p.Shape == tasks.HanLockstep {
		return nil, nil, fmt.Errorf("measure %v: plan %v has stages, not segments that flow: that is for Stages", r, p)
	}
	if one, err = tasks.Expand(costs.First(r, p, 1), t, p, rank); err == nil {
		many, err = tasks.Expand(costs.First(r, p, int64(len(one.Phases)+costs.Extra)), t, p, rank)
	}
	if err != nil {
		err = fmt.Errorf("measure: %w", err)
	}
	return one, many, err
}

// pipelineOf derives each group's part. A segment is complete in a group when its
// slowest rank has it: a leader that only sends is done early, and says little
// about the pipeline behind it. Times are medians over repetitions.
func pipelineOf(one, many samples, g *tasks.Graph) costs.Pipeline {
	p := costs.Pipeline{Whole: stats.Summarize(many.totals()), Segments: g.Segments, Phases: len(g.Phases)}
	for _, group := range g.On.Groups(0) {
		done := make([]float64, g.Segments)
		for i := range done {
			done[i] = many.lastOf(group, 1+i)
		}
		p.Leaders = append(p.Leaders, costs.NewCompletion(one.lastOf(group, 0), done, many.lastOf(group, 0), g.Plan.Window))
	}
	return p
}

// lastOf returns the median of the largest number of a group's ranks in one column.
func (s samples) lastOf(g *levels.Group, column int) float64 {
	return costs.Median(s.eachTime(func(ranks [][]float64) (last float64) {
		for _, r := range g.Ranks {
			last = max(last, ranks[r][column])
		}
		return last
	}))
}

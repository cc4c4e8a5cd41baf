package measure

import (
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Task times the tasks of some phases of a request by themselves, on its first segments: when each
// segment was complete on all ranks. All ranks begin together, and the work of the other phases is
// left out.
func (b *Bench) Task(ctx context.Context, r tasks.Request, p tasks.Plan, phases []int, segments int64, stop stats.Stop) (pipe costs.Pipeline, err error) {
	r, p = fullSegments(r, p, segments)
	whole, err := tasks.Expand(r, b.topology, p, b.Rank())
	if err != nil {
		return pipe, fmt.Errorf("measure: %w", err)
	}
	g := whole.Only(isOf(phases))
	x, err := b.bindGraph(g, fmt.Sprintf(" only %v", phases))
	if err != nil {
		return pipe, fmt.Errorf("measure: %w", err)
	}
	all, err := b.repeatInTurns(ctx, stop, func(ctx context.Context) ([]float64, error) { return x.segmentTimes(ctx, g) })
	if err != nil {
		return pipe, fmt.Errorf("measure %v: %w", r, err)
	}
	if b.Rank() == 0 {
		pipe = taskPipeline(all[0], g.Segments, len(phases), p.Window)
	}
	return pipe, b.shareJSON(ctx, &pipe)
}

// Task is [Bench.Task] on simulated time.
func (s *Simulated) Task(ctx context.Context, r tasks.Request, p tasks.Plan, phases []int, segments int64, _ stats.Stop) (pipe costs.Pipeline, err error) {
	return s.task(ctx, r, p, phases, segments, s.idleRanks)
}

// task is Task; idle says which ranks do nothing.
func (s *Simulated) task(ctx context.Context, r tasks.Request, p tasks.Plan, phases []int, segments int64, idle func(r tasks.Request, p tasks.Plan, phases []int) func(levels.Rank) bool) (pipe costs.Pipeline, err error) {
	r, p = fullSegments(r, p, s.affordableSegments(r, p, phases, segments))
	_, n := tasks.Segments(r, p)
	compilation := s.compilation(ctx, r, p)
	compilation.Keep, compilation.Idle = isOf(phases), idle(r, p, phases)
	all, err := s.sampleSegments(compilation, int(n))
	if err != nil {
		return pipe, fmt.Errorf("measure: %w", err)
	}
	return taskPipeline(all, int(n), len(phases), p.Window), nil
}

// Segments of a unit of many steps: as many as stay below mostSteps, or enough beyond the phases to show
// the time of one more.
const (
	mostSteps = 4 << 20
	leastMore = 1
)

// affordableSegments returns how many segments of phases to simulate where so many are asked for.
func (s *Simulated) affordableSegments(r tasks.Request, p tasks.Plan, phases []int, segments int64) int64 {
	if segments <= leastMore+int64(len(phases)) {
		return segments
	}
	r, p = fullSegments(r, p, 1)
	g, err := tasks.Expand(r, s.topology, p, 0)
	if err != nil {
		return segments // as compiling will say
	}
	ranks := 0
	groups := g.Groups(g.Phases[phases[0]])
	for _, group := range groups {
		ranks += len(group.Ranks)
	}
	middle := groups[0].Ranks[len(groups[0].Ranks)/2] // no root: that may do most
	if g, err = tasks.Expand(r, s.topology, p, middle); err != nil {
		return segments
	}
	one, err := submodules.Compile(g.Only(isOf(phases)), s.topology.Size(), s.registry)
	if err != nil {
		return segments
	}
	return min(segments, max(leastMore+int64(len(phases)), mostSteps/int64(max(ranks*one.Len(), 1))))
}

// idleRanks returns which ranks do nothing when phases are simulated by themselves; nil: none. If
// the phases are within nodes, nodes with groups of equal sizes and leaders do the same at the same
// time, and one of them tells. Requests without blocks are quick anyway.
func (s *Simulated) idleRanks(r tasks.Request, p tasks.Plan, phases []int) func(levels.Rank) bool {
	if !r.Blocks() || r.Differ() || s.machine.Cores.InAll > 0 || s.machine.Noise > 0 {
		return nil
	}
	g, err := tasks.Expand(r, s.topology, p, 0)
	if err != nil {
		return nil // as compiling will say
	}
	kinds := make([]string, s.topology.Nodes()) // of nodes
	for _, at := range phases {
		if !g.On.WithinNodes(g.Phases[at].Level) {
			return nil
		}
		for _, group := range g.Groups(g.Phases[at]) {
			node := s.topology.Node(group.Lead())
			kinds[node] += fmt.Sprintf(" %d/%d", group.Leader, len(group.Ranks))
		}
	}
	alike := map[string]int{}
	kinds[s.topology.Node(g.On.Root())] += " root"
	kinds[len(kinds)-1] += " last" // its part of divided segments may be shorter
	for node, kind := range kinds {
		if _, known := alike[kind]; !known {
			alike[kind] = node
		}
	}
	return func(rank levels.Rank) bool {
		node := int(s.topology.Node(rank))
		return alike[kinds[node]] != node
	}
}

func isOf(phases []int) func(t *tasks.Task) bool {
	return func(t *tasks.Task) bool { return slices.Contains(phases, int(t.Phase)) }
}

// taskPipeline is the pipeline of all ranks as one group: until the slowest of them.
func taskPipeline(s samples, segments, phases, window int) costs.Pipeline {
	done := make([]float64, segments)
	for i := range done {
		done[i] = costs.Median(s.eachTime(func(ranks [][]float64) float64 { return slowestOf(ranks, 1+i) }))
	}
	whole := stats.Summarize(s.totals())
	alone := 0.0
	if segments == 1 {
		alone = whole.P50
	}
	return costs.Pipeline{
		Whole: whole, Segments: segments, Phases: phases,
		Leaders: []costs.Completion{costs.NewCompletion(alone, done, whole.P50, window)},
	}
}

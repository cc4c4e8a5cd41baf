package measure

import (
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Overlapped is the cost of two task kinds, alone and at the same time.
type Overlapped struct {
	Kinds    [2]tasks.Kind
	Alone    [2]costs.Cost
	Together costs.Cost
}

// Hidden is how much of the shorter of two tasks the longer one hides, as a share, from their times
// alone and together: 1 is perfect overlap, 0 one after the other, less than 0 even worse.
func Hidden(a, b, together float64) float64 { return (a + b - together) / min(a, b) }

// Overlap times the tasks of two kinds of a request, each on a segment of its own: alone, and begun
// at the same time (HAN, figures 2 and 6), in turns. The request is a bcast or an allreduce; kinds
// without tasks are errors.
func (b *Bench) Overlap(ctx context.Context, r tasks.Request, p tasks.Plan, kinds [2]tasks.Kind, stop stats.Stop) (o Overlapped, err error) {
	whole, err := overlapGraph(r, p, b.topology, b.Rank(), kinds)
	if err != nil {
		return o, err
	}
	var subjects []subject
	for _, only := range aloneAndTogether(kinds) {
		x, err := b.bindGraph(whole.Only(isOneOf(kinds, only)), fmt.Sprintf(" only %v", only))
		if err != nil {
			return o, fmt.Errorf("measure: %w", err)
		}
		subjects = append(subjects, x.total)
	}
	all, err := b.repeatInTurns(ctx, stop, subjects...)
	if err != nil {
		return o, fmt.Errorf("measure %v: %w", r, err)
	}
	if b.Rank() == 0 {
		o = Overlapped{kinds, [2]costs.Cost{leaderCosts(all[0], whole), leaderCosts(all[1], whole)}, leaderCosts(all[2], whole)}
	}
	return o, b.shareJSON(ctx, &o)
}

// Overlap is [Bench.Overlap] on simulated time.
func (s *Simulated) Overlap(ctx context.Context, r tasks.Request, p tasks.Plan, kinds [2]tasks.Kind, _ stats.Stop) (o Overlapped, err error) {
	whole, err := overlapGraph(r, p, s.topology, 0, kinds)
	if err != nil {
		return o, err
	}
	var found []costs.Cost
	for _, only := range aloneAndTogether(kinds) {
		compilation := s.compilation(ctx, whole.Request, whole.Plan)
		compilation.Keep = isOneOf(kinds, only)
		all, err := s.sample(compilation, 1, nil)
		if err != nil {
			return o, fmt.Errorf("measure: %w", err)
		}
		found = append(found, leaderCosts(all, whole))
	}
	return Overlapped{kinds, [2]costs.Cost{found[0], found[1]}, found[2]}, nil
}

// overlapGraph returns a rank's graph of two segments. In a dataflow shape nothing orders
// tasks of different segments and kinds.
func overlapGraph(r tasks.Request, p tasks.Plan, t *levels.Topology, rank levels.Rank, kinds [2]tasks.Kind) (*tasks.Graph, error) {
	if r.Coll != tasks.Bcast && r.Coll != tasks.Allreduce {
		return nil, fmt.Errorf("measure %v: tasks run by themselves only of bcast and allreduce, where all ranks have a buffer for results", r)
	}
	r, p = fullSegments(r, p, 2)
	p.Window = 2
	if p.Shape == tasks.HanLockstep {
		p.Shape = tasks.Han
	}
	whole, err := tasks.Expand(r, t, p, rank)
	if err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	for _, k := range kinds {
		if !slices.ContainsFunc(whole.Phases, func(ph tasks.Phase) bool { return ph.Kind == k }) {
			return nil, fmt.Errorf("measure %v: plan %v makes no tasks %v", r, p, k)
		}
	}
	return whole, nil
}

// aloneAndTogether lists the runs: each kind by itself, and both.
func aloneAndTogether(kinds [2]tasks.Kind) [][]tasks.Kind {
	return [][]tasks.Kind{kinds[:1], kinds[1:], kinds[:]}
}

// isOneOf returns a test for the tasks to run: those of the first of kinds on segment 0, and of the
// second on segment 1, with a kind in only.
func isOneOf(kinds [2]tasks.Kind, only []tasks.Kind) func(t *tasks.Task) bool {
	return func(t *tasks.Task) bool { return t.Kind == kinds[t.Segment] && slices.Contains(only, t.Kind) }
}

// leaderCosts returns the costs of a subject for the leaders of level 0.
func leaderCosts(s samples, g *tasks.Graph) costs.Cost {
	var times [][]float64
	for _, group := range g.On.Groups(0) {
		times = append(times, s.column(group.Lead(), 0))
	}
	return cost(times)
}

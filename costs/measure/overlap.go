package measure

import (
	"context"
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/tasks"
)

// Overlapped is what two task kinds cost, alone and at the same time.
type Overlapped struct {
	Kinds    [2]tasks.Kind
	Alone    [2]costs.Cost
	Together costs.Cost
}

// Hidden is how much of the shorter of two tasks the longer one hides, from what
// they take alone and together, in parts of it: 1 is perfect overlap, 0 one after
// the other, less than 0 even worse.
func Hidden(a, b, together float64) float64 { return (a + b - together) / min(a, b) }

// Overlap times the tasks of two kinds of a request, each on a segment of its own:
// alone, and begun at the same time (HAN, figures 2 and 6), in turns. The request is
// a bcast or an allreduce; kinds that it has no tasks of are errors.
func (b *Bench) Overlap(ctx context.Context, r tasks.Request, p tasks.Plan, kinds [2]tasks.Kind, stop stats.Stop) (o Overlapped, err error) {
	if r.Coll != tasks.Bcast && r.Coll != tasks.Allreduce {
		return o, fmt.Errorf("measure %v: tasks run by themselves only of bcast and allreduce, where all ranks have a buffer for results", r)
	}
	r, p = exactly(r, p, 2)
	p.Window = 2
	whole, err := tasks.Expand(r, b.topology, p, b.Rank())
	if err != nil {
		return o, fmt.Errorf("measure: %w", err)
	}
	for _, k := range kinds {
		if !slices.ContainsFunc(whole.Phases, func(ph tasks.Phase) bool { return ph.Kind == k }) {
			return o, fmt.Errorf("measure %v: plan %v makes no tasks %v", r, p, k)
		}
	}
	var subjects []subject
	for _, only := range [][]tasks.Kind{kinds[:1], kinds[1:], kinds[:]} {
		x, err := b.bindGraph(pick(whole, kinds, only), fmt.Sprintf(" only %v", only))
		if err != nil {
			return o, fmt.Errorf("measure: %w", err)
		}
		subjects = append(subjects, x.total)
	}
	all, err := b.repeat(ctx, stop, subjects...)
	if err != nil {
		return o, fmt.Errorf("measure %v: %w", r, err)
	}
	if b.Rank() == 0 {
		o = Overlapped{kinds, [2]costs.Cost{leaders(all[0], whole), leaders(all[1], whole)}, leaders(all[2], whole)}
	}
	return o, b.share(ctx, &o)
}

// pick is the graph of those tasks of g that belong to the first of kinds on segment
// 0, or to the second on segment 1, and to one of only. Nothing orders them.
func pick(g *tasks.Graph, kinds [2]tasks.Kind, only []tasks.Kind) *tasks.Graph {
	some := &tasks.Graph{
		Request: g.Request, Plan: g.Plan, On: g.On, Rank: g.Rank,
		Segments: g.Segments, Phases: g.Phases, Partial: g.Partial,
	}
	for id := range dag.ID(g.Len()) {
		t := g.Node(id)
		if t.Kind == kinds[t.Segment] && slices.Contains(only, t.Kind) {
			some.Add(*t)
		}
	}
	return some
}

// leaders is what a subject cost the leaders of level 0.
func leaders(s samples, g *tasks.Graph) costs.Cost {
	var times [][]float64
	for _, group := range g.On.Groups(0) {
		times = append(times, s.column(int(group.Lead()), 0))
	}
	return cost(times)
}

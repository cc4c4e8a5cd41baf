package tasks

import (
	"slices"
	"strings"

	"github.com/tierflow/tierflow/dag"
)

// Stage is the tasks in flight together on one rank in one step of the pipeline: HAN's compound
// tasks (HAN, sections III-A and III-B, figures 1 and 5).
type Stage struct {
	Index int      // of the pipeline, from 0; a rank may have nothing in some
	Tasks []dag.ID // latest phase first, as the paper names them
	Name  string   // sbibirsr
}

// Stages derives the stage tasks of the rank from the task graph with its order edges: a task's
// stage is the longest way to it. A data edge counts the phases between its ends (a member's
// sr→sb waits for ir and ib elsewhere), and an order edge counts one.
func (g *Graph) Stages() ([]Stage, error) {
	frozen, err := g.Freeze(func(e dag.Edge) bool { return e.Kind == DataEdge || e.Kind == OrderEdge })
	if err != nil {
		return nil, err
	}
	at := make([]int, g.Len())
	for _, id := range frozen.Order() {
		t := g.Node(id)
		at[id] = max(at[id], int(t.Phase))
		for _, next := range frozen.Succ(id) {
			step := 1
			if n := g.Node(next); n.Segment == t.Segment {
				step = int(n.Phase - t.Phase)
			}
			at[next] = max(at[next], at[id]+step)
		}
	}
	return g.collect(at), nil
}

func (g *Graph) collect(at []int) []Stage {
	var stages []Stage
	for id := range dag.ID(g.Len()) {
		i, found := slices.BinarySearchFunc(stages, at[id], func(s Stage, n int) int { return s.Index - n })
		if !found {
			stages = slices.Insert(stages, i, Stage{Index: at[id]})
		}
		stages[i].Tasks = append(stages[i].Tasks, id)
	}
	for i := range stages {
		s := &stages[i]
		slices.SortStableFunc(s.Tasks, func(a, b dag.ID) int { return int(g.Node(b).Phase) - int(g.Node(a).Phase) })
		var name strings.Builder
		for _, id := range s.Tasks {
			name.WriteString(g.Node(id).Kind.String())
		}
		s.Name = name.String()
	}
	return stages
}

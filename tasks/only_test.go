package tasks_test

import (
	"slices"
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

// A part of a graph has the edges between the tasks that it keeps, and no others.
func TestOnly(t *testing.T) {
	g := expand(t, request(tasks.Allreduce, 6), "4x2", "shape=han,fs=4,w=2", 0)
	edges := func(g *tasks.Graph, keep func(t *tasks.Task) bool) (all []string) {
		for _, e := range g.Edges() {
			if from, to := g.Node(e.From), g.Node(e.To); keep(from) && keep(to) {
				all = append(all, from.String()+" "+to.String())
			}
		}
		slices.Sort(all)
		return all
	}
	late := func(t *tasks.Task) bool { return t.Segment > 2 }
	all := func(*tasks.Task) bool { return true }
	if want, got := edges(g, late), edges(g.Only(late), all); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("edges %v, want %v", got, want)
	}
}

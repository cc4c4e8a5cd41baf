package tasks

import "github.com/tierflow/tierflow/dag"

// Only returns a graph of the tasks of g that keep reports true for, with the edges between
// them. It serves to measure tasks by themselves: the other tasks' results are missing in
// buffers, so results mean nothing. All ranks must keep the same phases.
func (g *Graph) Only(keep func(t *Task) bool) *Graph {
	some := *g
	some.Graph = dag.Graph[Task]{}
	some.tiePlaces()
	ids := make([]dag.ID, g.Len())
	for id := range dag.ID(g.Len()) {
		ids[id] = -1
		if t := g.Node(id); keep(t) {
			ids[id] = some.Add(*t)
		}
	}
	for _, e := range g.Edges() {
		if from, to := ids[e.From], ids[e.To]; from >= 0 && to >= 0 {
			some.Connect(from, to, e.Kind)
		}
	}
	return &some
}

package dag

import (
	"errors"

	"github.com/dominikbraun/graph"
)

// ErrReadOnly is returned by the mutating methods of [Frozen.Store].
var ErrReadOnly = errors.New("dag: frozen graph is read-only")

// Store shows the graph to the algorithms of github.com/dominikbraun/graph
// without copying it. The vertices are the ids:
//
//	g := graph.NewWithStore(func(id dag.ID) dag.ID { return id }, f.Store(), graph.Directed())
//
// All reading works: sorting, searching, paths, components, drawing. So do changes of a clone
// (TransitiveReduction, Union, Clone itself), for clones have a store of their own in memory.
// AddVertex, AddEdge and the like on g return [ErrReadOnly]. Edges have weight 0 and no data;
// vertices and edges are listed in ascending order. The store is safe for concurrent use.
func (f *Frozen) Store() graph.Store[ID, ID] { return store{f} }

type store struct{ f *Frozen }

var _ graph.Store[ID, ID] = store{}

func (s store) Vertex(id ID) (ID, graph.VertexProperties, error) {
	if !s.f.has(id) {
		return 0, graph.VertexProperties{}, graph.ErrVertexNotFound
	}
	return id, graph.VertexProperties{}, nil
}

func (s store) ListVertices() ([]ID, error) {
	ids := make([]ID, s.f.Len())
	for i := range ids {
		ids[i] = ID(i)
	}
	return ids, nil
}

func (s store) VertexCount() (int, error) { return s.f.Len(), nil }

func (s store) Edge(from, to ID) (graph.Edge[ID], error) {
	if !s.f.Has(from, to) {
		return graph.Edge[ID]{}, graph.ErrEdgeNotFound
	}
	// The map is there because options of graph.UpdateEdge write to it before
	// the store is asked.
	return graph.Edge[ID]{Source: from, Target: to, Properties: graph.EdgeProperties{Attributes: map[string]string{}}}, nil
}

func (s store) ListEdges() ([]graph.Edge[ID], error) {
	edges := make([]graph.Edge[ID], 0, len(s.f.succ.ids))
	for from := range ID(s.f.Len()) {
		for _, to := range s.f.Succ(from) {
			edges = append(edges, graph.Edge[ID]{Source: from, Target: to})
		}
	}
	return edges, nil
}

func (store) AddVertex(ID, ID, graph.VertexProperties) error { return ErrReadOnly }
func (store) RemoveVertex(ID) error                          { return ErrReadOnly }
func (store) AddEdge(ID, ID, graph.Edge[ID]) error           { return ErrReadOnly }
func (store) UpdateEdge(ID, ID, graph.Edge[ID]) error        { return ErrReadOnly }
func (store) RemoveEdge(ID, ID) error                        { return ErrReadOnly }

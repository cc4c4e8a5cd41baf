package dag

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dominikbraun/graph"
)

// Audit judges [Graph.Freeze] by another library: it builds the graph again with
// github.com/dominikbraun/graph, and compares. If Freeze gives an order, its edges have to be the
// library's, read both ways, and each node has to stand behind its predecessors: so there is no cycle. If
// Freeze names a cycle, the library has to have all edges of it: then the error is this [*CycleError].
// Any other error says where the two differ.
//
// The copy is made of maps. It takes some 2 µs for each node and edge, longer than compiling a task graph:
// good for checks, not for runs.
func (g *Graph[T]) Audit() error {
	again, err := g.rebuild()
	if err != nil {
		return err
	}
	f, err := g.Freeze(nil)
	if err == nil {
		return f.compare(again)
	}
	if c, ok := errors.AsType[*CycleError](err); ok {
		err = c.confirm(again)
	}
	return err
}

// confirm returns e if the library's graph has the cycle's edges.
func (e *CycleError) confirm(again graph.Graph[ID, ID]) error {
	for i, from := range e.Cycle {
		to := e.Cycle[(i+1)%len(e.Cycle)]
		if _, err := again.Edge(from, to); err != nil {
			return fmt.Errorf("dag: audit: %v, but %d -> %d: %w", e, from, to, err)
		}
	}
	return e
}

// rebuild returns the graph as the library has it. Repeated edges are one.
func (g *Graph[T]) rebuild() (graph.Graph[ID, ID], error) {
	again := graph.New(func(id ID) ID { return id }, graph.Directed())
	for id := range ID(g.Len()) {
		if err := again.AddVertex(id); err != nil {
			return nil, fmt.Errorf("dag: audit: node %d: %w", id, err)
		}
	}
	for _, e := range g.edges {
		if err := again.AddEdge(e.From, e.To); err != nil && !errors.Is(err, graph.ErrEdgeAlreadyExists) {
			return nil, fmt.Errorf("dag: audit: edge from %d to %d: %w", e.From, e.To, err)
		}
	}
	return again, nil
}

// compare returns an error unless the library's graph has the same edges, read both ways, and the
// order puts each node behind its predecessors.
func (f *Frozen) compare(again graph.Graph[ID, ID]) error {
	next, err := again.AdjacencyMap()
	if err != nil {
		return fmt.Errorf("dag: audit: %w", err)
	}
	before, err := again.PredecessorMap()
	if err != nil {
		return fmt.Errorf("dag: audit: %w", err)
	}
	for id := range ID(f.Len()) {
		if want := slices.Sorted(maps.Keys(next[id])); !slices.Equal(f.Succ(id), want) {
			return fmt.Errorf("dag: audit: successors of %d are %v, frozen %v", id, want, f.Succ(id))
		}
		if want := slices.Sorted(maps.Keys(before[id])); !slices.Equal(f.Pred(id), want) {
			return fmt.Errorf("dag: audit: predecessors of %d are %v, frozen %v", id, want, f.Pred(id))
		}
	}
	for _, id := range f.order {
		if len(before[id]) > 0 {
			return fmt.Errorf("dag: audit: the order has %d before its predecessors %v", id, slices.Sorted(maps.Keys(before[id])))
		}
		for to := range next[id] {
			delete(before[to], id)
		}
		delete(before, id)
	}
	if len(before) > 0 {
		return fmt.Errorf("dag: audit: the order lacks %v", slices.Sorted(maps.Keys(before)))
	}
	return nil
}

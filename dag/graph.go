package dag

import (
	"fmt"
	"math"
	"slices"
)

// ID names a node of one graph: the n-th node added has ID n, counted from 0.
type ID int32

// EdgeKind tells edges apart for the filter of [Graph.Freeze]. Its values mean what the user
// says.
type EdgeKind uint8

// Edge puts From before To.
type Edge struct {
	From, To ID
	Kind     EdgeKind
}

// Graph is an append-only directed graph with a value of type T at each node.
// The zero value is an empty graph. A Graph may hold cycles until it is frozen.
// It must not be used by several goroutines while one of them adds to it.
type Graph[T any] struct {
	nodes []T
	edges []Edge
}

// Grow makes room for so many further nodes and edges: adding them doesn't allocate.
func (g *Graph[T]) Grow(nodes, edges int) {
	g.nodes = slices.Grow(g.nodes, nodes)
	g.edges = slices.Grow(g.edges, edges)
}

// Reset drops all nodes and edges, and keeps their memory for others. The results of
// [Graph.Nodes], [Graph.Edges] and [Graph.Node] must not be used any more.
func (g *Graph[T]) Reset() { g.nodes, g.edges = g.nodes[:0], g.edges[:0] }

// Add appends a node with value v and returns its id.
func (g *Graph[T]) Add(v T) ID {
	if len(g.nodes) == math.MaxInt32 {
		panic("dag: Graph holds at most 2^31-1 nodes")
	}
	g.nodes = append(g.nodes, v)
	return ID(len(g.nodes) - 1)
}

// Connect appends an edge between two existing nodes; it panics if one doesn't exist. Edges may
// be repeated, with the same kind or another.
func (g *Graph[T]) Connect(from, to ID, kind EdgeKind) {
	if n := ID(len(g.nodes)); uint32(from) >= uint32(n) || uint32(to) >= uint32(n) {
		panic(fmt.Sprintf("dag: Connect(%d, %d): both ends must exist, graph has %d nodes", from, to, n))
	}
	if len(g.edges) == math.MaxInt32 {
		panic("dag: Graph holds at most 2^31-1 edges")
	}
	g.edges = append(g.edges, Edge{from, to, kind})
}

// Len returns the number of nodes; ids run from 0 to Len()-1.
func (g *Graph[T]) Len() int { return len(g.nodes) }

// Node returns the value of a node, to read or to change. The pointer is good
// until the next Add.
func (g *Graph[T]) Node(id ID) *T { return &g.nodes[id] }

// Nodes returns all values by id. The slice belongs to the graph.
func (g *Graph[T]) Nodes() []T { return slices.Clip(g.nodes) }

// Edges returns all edges in the order of the calls to Connect, repeated ones
// too. The slice belongs to the graph and must not be changed.
func (g *Graph[T]) Edges() []Edge { return slices.Clip(g.edges) }

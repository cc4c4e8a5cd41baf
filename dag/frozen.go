package dag

import (
	"fmt"

	"github.com/tierflow/tierflow/dag/invariants"
)

// Frozen is an acyclic graph as arrays: ids and edges of the [Graph] it was
// made from, without values and kinds. Nothing writes to it after Freeze, so it
// is safe for concurrent use; the slices its methods return by reference
// (Succ, Pred, InDegree, Order) must not be changed.
type Frozen struct {
	succ, pred rows
	indegree   []int32
	order      []ID
}

// Freeze returns the graph made of all nodes and the edges that keep returns true for (all of
// them if keep is nil); edges with the same ends become one. keep is called once per edge, in
// the order of [Graph.Edges]. The Graph is not changed and shares no memory with the result.
//
// If the kept edges close a cycle the error is a [*CycleError].
func (g *Graph[T]) Freeze(keep func(Edge) bool) (*Frozen, error) {
	return freeze(len(g.nodes), filter(g.edges, keep))
}

func filter(edges []Edge, keep func(Edge) bool) []Edge {
	if keep == nil {
		return edges
	}
	kept := make([]Edge, 0, len(edges))
	for _, e := range edges {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

func freeze(n int, edges []Edge) (*Frozen, error) {
	// Two transpositions are a radix sort: the first leaves each row sorted, with equal edges
	// side by side; the second starts from merged rows.
	succ := sources(n, edges).transpose().merge()
	pred := succ.transpose()
	indegree := make([]int32, n)
	for i := range indegree {
		indegree[i] = pred.start[i+1] - pred.start[i]
	}
	order, err := topological(succ, pred, indegree)
	if err != nil {
		return nil, err
	}
	f := &Frozen{succ: succ, pred: pred, indegree: indegree, order: order}
	if invariants.On {
		f.verify()
	}
	return f, nil
}

// verify panics unless Order has every node once, each after its predecessors.
func (f *Frozen) verify() {
	seen := make([]bool, f.Len())
	for _, id := range f.order {
		for _, p := range f.Pred(id) {
			if !seen[p] {
				panic(fmt.Sprintf("dag: order has %d before its predecessor %d", id, p))
			}
		}
		if seen[id] {
			panic(fmt.Sprintf("dag: order has %d twice", id))
		}
		seen[id] = true
	}
	if len(f.order) != f.Len() {
		panic(fmt.Sprintf("dag: order has %d of %d nodes", len(f.order), f.Len()))
	}
}

// Len returns the number of nodes.
func (f *Frozen) Len() int { return len(f.indegree) }

// Succ returns the nodes that id has edges to, ascending.
func (f *Frozen) Succ(id ID) []ID { return f.succ.at(id) }

// Pred returns the nodes with edges to id, ascending.
func (f *Frozen) Pred(id ID) []ID { return f.pred.at(id) }

// Has reports whether there is an edge from one node to the other, in logarithmic time. Unknown
// nodes have no edges.
func (f *Frozen) Has(from, to ID) bool {
	return f.has(from) && f.has(to) && f.succ.has(from, to)
}

func (f *Frozen) has(id ID) bool { return uint(id) < uint(f.Len()) }

// InDegree returns len(Pred(id)) for every node: what a walk counts down from.
func (f *Frozen) InDegree() []int32 { return f.indegree }

// Order returns all nodes with edges from earlier to later ones only. Of several possible next
// nodes the one with the smallest id comes first.
func (f *Frozen) Order() []ID { return f.order }

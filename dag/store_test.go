package dag

import (
	"errors"
	"slices"
	"testing"

	"github.com/dominikbraun/graph"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func borrowed(f *Frozen) graph.Graph[ID, ID] {
	return graph.NewWithStore(func(id ID) ID { return id }, f.Store(), graph.Directed())
}

// mirror builds g with the library's own means.
func mirror(t *rapid.T, g *Graph[int]) graph.Graph[ID, ID] {
	m := graph.New(func(id ID) ID { return id }, graph.Directed())
	for id := range ID(g.Len()) {
		if err := m.AddVertex(id); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range g.Edges() {
		if err := m.AddEdge(e.From, e.To); err != nil && !errors.Is(err, graph.ErrEdgeAlreadyExists) {
			t.Fatal(err)
		}
	}
	return m
}

func TestFreezeAgainstTopologicalSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := random(t, rapid.Bool().Draw(t, "acyclic"))
		_, want := graph.TopologicalSort(mirror(t, g))
		f, err := g.Freeze(nil)
		if (err == nil) != (want == nil) {
			t.Fatalf("Freeze: %v; TopologicalSort: %v", err, want)
		}
		if err != nil {
			return
		}
		order, err := graph.TopologicalSort(borrowed(f))
		if err != nil {
			t.Fatal(err)
		}
		checkOrder(t, g, order)
		checkOrder(t, g, f.Order())
	})
}

func checkOrder(t *rapid.T, g *Graph[int], order []ID) {
	t.Helper()
	at := map[ID]int{}
	for i, id := range order {
		at[id] = i
	}
	if len(order) != g.Len() || len(at) != g.Len() {
		t.Fatalf("order %v does not hold each of %d nodes once", order, g.Len())
	}
	for _, e := range g.Edges() {
		if at[e.From] >= at[e.To] {
			t.Fatalf("order %v breaks edge %v", order, e)
		}
	}
}

func TestReductionAgainstGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mustFreeze(t, random(t, true))
		want, err := graph.TransitiveReduction(borrowed(f))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ends(t, want), ends(t, borrowed(f.Reduction()))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func ends(t *rapid.T, g graph.Graph[ID, ID]) [][2]ID {
	edges, err := g.Edges()
	if err != nil {
		t.Fatal(err)
	}
	e := make([][2]ID, len(edges))
	for i := range edges {
		e[i] = [2]ID{edges[i].Source, edges[i].Target}
	}
	slices.SortFunc(e, func(a, b [2]ID) int { return slices.Compare(a[:], b[:]) })
	return e
}

// What the package comment of the store promises of the library's functions.
func TestStoreServesTheLibrary(t *testing.T) {
	f := mustFreeze(t, wavefront(3, 3)) // 0 1 2 / 3 4 5 / 6 7 8
	g := borrowed(f)
	stable, err := graph.StableTopologicalSort(g, func(a, b ID) bool { return a < b })
	if err != nil || len(stable) != 9 {
		t.Errorf("StableTopologicalSort: %v, %v", stable, err)
	}
	if p, err := graph.ShortestPath(g, 0, 8); err != nil || len(p) != 5 {
		t.Errorf("ShortestPath: %v, %v", p, err)
	}
	if p, err := graph.AllPathsBetween(g, 0, 8); err != nil || len(p) != 6 {
		t.Errorf("AllPathsBetween: %v, %v", p, err)
	}
	if c, err := graph.StronglyConnectedComponents(g); err != nil || len(c) != 9 {
		t.Errorf("StronglyConnectedComponents: %v, %v", c, err)
	}
	if c, err := graph.CreatesCycle(g, 8, 0); err != nil || !c {
		t.Errorf("CreatesCycle: %v, %v", c, err)
	}
	seen := 0
	count := func(ID) bool { seen++; return false }
	if err := graph.DFS(g, 4, count); err != nil || seen != 4 {
		t.Errorf("DFS saw %d, %v", seen, err)
	}
	if err := graph.BFS(g, 4, count); err != nil || seen != 8 {
		t.Errorf("BFS saw %d, %v", seen-4, err)
	}
	if n, err := g.Size(); err != nil || n != 12 {
		t.Errorf("Size: %d, %v", n, err)
	}
	clone, err := g.Clone()
	if err != nil {
		t.Fatal(err)
	}
	if err := clone.AddEdge(8, 0); err != nil {
		t.Errorf("a clone should be writable: %v", err)
	}
	if f.Has(8, 0) {
		t.Error("the clone wrote to the frozen graph")
	}
}

func TestStoreIsReadOnly(t *testing.T) {
	g := borrowed(mustFreeze(t, wavefront(2, 2)))
	for name, err := range map[string]error{
		"AddVertex":    g.AddVertex(9),
		"RemoveVertex": g.RemoveVertex(0),
		"AddEdge":      g.AddEdge(0, 3),
		"UpdateEdge":   g.UpdateEdge(0, 1, graph.EdgeAttribute("key", "value"), graph.EdgeWeight(2)),
		"RemoveEdge":   g.RemoveEdge(0, 1),
	} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v, want %v", name, err, ErrReadOnly)
		}
	}
	if _, err := g.Vertex(4); !errors.Is(err, graph.ErrVertexNotFound) {
		t.Errorf("Vertex(4): %v", err)
	}
	for _, e := range [][2]ID{{0, 3}, {-1, 0}, {0, 4}} {
		if _, err := g.Edge(e[0], e[1]); !errors.Is(err, graph.ErrEdgeNotFound) {
			t.Errorf("Edge%v: %v", e, err)
		}
	}
}

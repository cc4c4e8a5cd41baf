package dag_test

import (
	"errors"
	"fmt"

	"github.com/dominikbraun/graph"

	"github.com/tierflow/tierflow/dag"
)

// diamond is 0 -> {1, 2} -> 3, and 0 -> 3 of another kind.
func diamond() *dag.Graph[string] {
	var g dag.Graph[string]
	top, left, right, bottom := g.Add("top"), g.Add("left"), g.Add("right"), g.Add("bottom")
	g.Connect(top, left, 1)
	g.Connect(top, right, 1)
	g.Connect(left, bottom, 1)
	g.Connect(right, bottom, 1)
	g.Connect(top, bottom, 2)
	return &g
}

func freeze(g *dag.Graph[string]) *dag.Frozen {
	f, err := g.Freeze(nil)
	if err != nil {
		panic(err)
	}
	return f
}

func Example() {
	g := diamond()
	f, err := g.Freeze(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range f.Order() {
		fmt.Println(*g.Node(id), "->", f.Succ(id))
	}
	// Output:
	// top -> [1 2 3]
	// left -> [3]
	// right -> [3]
	// bottom -> []
}

func ExampleGraph_Freeze() {
	g := diamond()
	some, _ := g.Freeze(func(e dag.Edge) bool { return e.Kind == 2 })
	fmt.Println(some.Succ(0))

	g.Connect(3, 1, 1)
	_, err := g.Freeze(nil)
	fmt.Println(err)
	var cycle *dag.CycleError
	if errors.As(err, &cycle) {
		fmt.Println(*g.Node(cycle.Cycle[0]), "waits for itself")
	}
	// Output:
	// [3]
	// dag: cycle: 1 -> 3 -> 1
	// left waits for itself
}

// A walk needs a counter per node; the graph itself is never written.
func ExampleFrozen_InDegree() {
	f := freeze(diamond())
	left := append([]int32(nil), f.InDegree()...)
	ready := []dag.ID{0}
	for len(ready) > 0 {
		id := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		fmt.Print(id, " ")
		for _, s := range f.Succ(id) {
			if left[s]--; left[s] == 0 {
				ready = append(ready, s)
			}
		}
	}
	// Output: 0 2 1 3
}

func ExampleFrozen_Reaches() {
	fmt.Println(freeze(diamond()).Reaches([][2]dag.ID{{0, 3}, {1, 2}, {2, 2}, {3, 0}}))
	// Output: [true false true false]
}

// Draw only the edges that say something new.
func ExampleFrozen_Reduction() {
	g := diamond()
	r := freeze(g).Reduction()
	for _, e := range g.Edges() {
		if r.Has(e.From, e.To) {
			fmt.Println(*g.Node(e.From), "->", *g.Node(e.To))
		}
	}
	// Output:
	// top -> left
	// top -> right
	// left -> bottom
	// right -> bottom
}

func ExampleFrozen_Store() {
	f := freeze(diamond())
	g := graph.NewWithStore(func(id dag.ID) dag.ID { return id }, f.Store(), graph.Directed())
	path, err := graph.ShortestPath(g, 0, 3)
	fmt.Println(path, err)
	fmt.Println(g.AddVertex(4))
	// Output:
	// [0 3] <nil>
	// dag: frozen graph is read-only
}

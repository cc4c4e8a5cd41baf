// Package dag is one container for directed acyclic graphs: build it by
// appending, freeze it to arrays, ask the arrays.
//
// A [Graph] holds values of any type under dense ids, and edges of user-defined kinds; one
// goroutine writes it. [Graph.Freeze] turns it, or some of its edges, into a [Frozen]: sorted
// adjacency arrays without kinds, duplicates or cycles. Nobody writes these again, and any
// number of goroutines may read them. Every answer is a function of the graph alone, so the same
// graph always gives the same order and picture.
//
// The package runs nothing, prints nothing, and knows no meaning of its nodes.
//
//	var g dag.Graph[string]
//	a, b, c := g.Add("a"), g.Add("b"), g.Add("c")
//	g.Connect(a, b, 0)
//	g.Connect(b, c, 0)
//	f, err := g.Freeze(nil)
//	if err != nil {
//		return err // wraps ErrCycle and names the cycle
//	}
//	for _, id := range f.Order() {
//		fmt.Println(*g.Node(id), f.Succ(id))
//	}
//
// [Graph.Audit] has Freeze judged by github.com/dominikbraun/graph, and [Frozen.Store] lends graphs to
// that library's algorithms. They work on maps and some take time in O(V²): good for checks and pictures, not for running.
package dag

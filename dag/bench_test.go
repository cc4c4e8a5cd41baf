package dag

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// wavefront is a grid in which each node waits for those above and left of it.
func wavefront(rows, cols int) *Graph[struct{}] {
	g := new(Graph[struct{}])
	g.Grow(rows*cols, 2*rows*cols)
	for i := range ID(rows * cols) {
		g.Add(struct{}{})
		if i%ID(cols) > 0 {
			g.Connect(i-1, i, 0)
		}
		if i >= ID(cols) {
			g.Connect(i-ID(cols), i, 0)
		}
	}
	return g
}

// scattered has edges between random nodes: forward, or along the ids reversed.
func scattered(nodes, edges int, reversed bool) *Graph[struct{}] {
	random := rand.New(rand.NewPCG(1, 2))
	g := new(Graph[struct{}])
	g.Grow(nodes, edges)
	for range nodes {
		g.Add(struct{}{})
	}
	for range edges {
		a := random.IntN(nodes - 1)
		b := min(a+1+random.IntN(200), nodes-1)
		if reversed {
			a, b = nodes-1-a, nodes-1-b
		}
		g.Connect(ID(a), ID(b), 0)
	}
	return g
}

func BenchmarkFreeze(b *testing.B) {
	for _, reversed := range []bool{false, true} {
		g := scattered(10_000, 30_000, reversed)
		b.Run(fmt.Sprintf("nodes=10000/edges=30000/reversed=%v", reversed), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustFreeze(b, g)
			}
		})
	}
}

// BenchmarkWalk is the least that any executor must do: count down in-degrees,
// last ready first, one goroutine, no work at the nodes. One op is one node.
func BenchmarkWalk(b *testing.B) {
	for _, side := range []int{32, 1000} {
		f := mustFreeze(b, wavefront(side, side))
		b.Run(fmt.Sprintf("grid=%dx%d", side, side), func(b *testing.B) {
			left := make([]int32, f.Len())
			ready := make([]ID, 0, f.Len())
			for b.Loop() {
				if n := walk(f, left, ready); n != f.Len() {
					b.Fatalf("walked over %d nodes of %d", n, f.Len())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*f.Len()), "ns/node")
		})
	}
}

func walk(f *Frozen, left []int32, ready []ID) (nodes int) {
	copy(left, f.InDegree())
	for id, n := range left {
		if n == 0 {
			ready = append(ready, ID(id))
		}
	}
	for ; len(ready) > 0; nodes++ {
		id := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, s := range f.Succ(id) {
			if left[s]--; left[s] == 0 {
				ready = append(ready, s)
			}
		}
	}
	return nodes
}

func TestWalkAllocatesNothing(t *testing.T) {
	f := mustFreeze(t, wavefront(20, 20))
	left, ready := make([]int32, f.Len()), make([]ID, 0, f.Len())
	if n := testing.AllocsPerRun(10, func() { walk(f, left, ready) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReaches(b *testing.B) {
	const nodes, asked = 40_000, 20_000
	f := mustFreeze(b, scattered(nodes, 3*nodes, false))
	random := rand.New(rand.NewPCG(3, 4))
	for _, far := range []int{1000, nodes} {
		queries := make([][2]ID, asked)
		for i := range queries {
			from := random.IntN(nodes)
			queries[i] = [2]ID{ID(from), ID(min(from+random.IntN(far), nodes-1))}
		}
		b.Run(fmt.Sprintf("nodes=%d/queries=%d/far=%d", nodes, asked, far), func(b *testing.B) {
			for b.Loop() {
				f.Reaches(queries)
			}
		})
	}
}

func BenchmarkReduction(b *testing.B) {
	const nodes, edges = 40_000, 120_000
	f := mustFreeze(b, scattered(nodes, edges, false))
	b.Run(fmt.Sprintf("nodes=%d/edges=%d", nodes, edges), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.Reduction()
		}
	})
}

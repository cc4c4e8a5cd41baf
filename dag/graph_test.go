package dag

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// random draws a graph of up to 40 nodes. An acyclic one gets its edges along a
// random permutation, so that ids are no topological order; a forward one along
// the ids.
func random(t *rapid.T, acyclic bool) *Graph[int] {
	n := rapid.IntRange(0, 40).Draw(t, "nodes")
	rank := make([]int, n)
	for i := range rank {
		rank[i] = i
	}
	if rapid.Bool().Draw(t, "shuffle") {
		rank = rapid.Permutation(rank).Draw(t, "rank")
	}
	g := new(Graph[int])
	for i := range n {
		g.Add(i)
	}
	if n == 0 {
		return g
	}
	node := rapid.IntRange(0, n-1)
	for range rapid.IntRange(0, 3*n).Draw(t, "edges") {
		a, b := node.Draw(t, "from"), node.Draw(t, "to")
		if acyclic && a == b {
			continue
		}
		if acyclic && rank[a] > rank[b] {
			a, b = b, a
		}
		g.Connect(ID(a), ID(b), EdgeKind(rapid.IntRange(0, 2).Draw(t, "kind")))
	}
	return g
}

func mustFreeze[T any](t interface{ Fatal(...any) }, g *Graph[T]) *Frozen {
	f, err := g.Freeze(nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFreezeRowsAgainstMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := random(t, true)
		keep := func(e Edge) bool { return e.Kind != 1 }
		f, err := g.Freeze(keep)
		if err != nil {
			t.Fatal(err)
		}
		succ, pred := map[ID]map[ID]bool{}, map[ID]map[ID]bool{}
		for id := range ID(g.Len()) {
			succ[id], pred[id] = map[ID]bool{}, map[ID]bool{}
		}
		for _, e := range g.Edges() {
			if keep(e) {
				succ[e.From][e.To], pred[e.To][e.From] = true, true
			}
		}
		for id := range ID(g.Len()) {
			checkRow(t, f.Succ(id), succ[id])
			checkRow(t, f.Pred(id), pred[id])
			if got := f.InDegree()[id]; int(got) != len(pred[id]) {
				t.Fatalf("in-degree of %d is %d, want %d", id, got, len(pred[id]))
			}
			for to := range ID(g.Len()) {
				if f.Has(id, to) != succ[id][to] {
					t.Fatalf("Has(%d, %d) = %v", id, to, f.Has(id, to))
				}
			}
		}
	})
}

func checkRow(t *rapid.T, got []ID, want map[ID]bool) {
	t.Helper()
	if len(got) != len(want) || !slices.IsSorted(got) {
		t.Fatalf("row %v, want the ids of %v, sorted", got, want)
	}
	for _, id := range got {
		if !want[id] {
			t.Fatalf("row %v, want the ids of %v", got, want)
		}
	}
}

// The slow twin of Order scans for the smallest ready id at every step.
func TestOrderTakesSmallestReady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mustFreeze(t, random(t, true))
		left := slices.Clone(f.InDegree())
		want := []ID{}
		for range f.Len() {
			id := ID(slices.Index(left, 0))
			left[id] = -1
			want = append(want, id)
			for _, s := range f.Succ(id) {
				left[s]--
			}
		}
		if diff := cmp.Diff(want, f.Order()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestFreezeNamesACycle(t *testing.T) {
	cyclic := 0
	rapid.Check(t, func(t *rapid.T) {
		g := random(t, false)
		_, err := g.Freeze(nil)
		if err == nil {
			return
		}
		cyclic++
		var c *CycleError
		if !errors.Is(err, ErrCycle) || !errors.As(err, &c) {
			t.Fatalf("error %v is no cycle", err)
		}
		for i, from := range c.Cycle {
			to := c.Cycle[(i+1)%len(c.Cycle)]
			if !slices.ContainsFunc(g.Edges(), func(e Edge) bool { return e.From == from && e.To == to }) {
				t.Fatalf("%v: no edge %d -> %d", err, from, to)
			}
		}
		if c.Cycle[0] != slices.Min(c.Cycle) {
			t.Fatalf("%v does not start at its smallest id", err)
		}
	})
	if cyclic == 0 {
		t.Error("no cyclic graph was drawn")
	}
}

func TestCycleErrorText(t *testing.T) {
	var g Graph[struct{}]
	for range 20 {
		g.Add(struct{}{})
	}
	g.Connect(3, 3, 0)
	if _, err := g.Freeze(nil); err == nil || err.Error() != "dag: cycle: 3 -> 3" {
		t.Errorf("self loop: %v", err)
	}
	for i := range ID(20) {
		g.Connect(i, (i+1)%20, 1)
	}
	_, err := g.Freeze(func(e Edge) bool { return e.Kind == 1 })
	if err == nil || !strings.HasSuffix(err.Error(), "14 -> 15 -> (4 more) -> 0") {
		t.Errorf("ring of 20: %v", err)
	}
	if _, err := g.Freeze(func(e Edge) bool { return e.Kind == 2 }); err != nil {
		t.Errorf("no edge kept: %v", err)
	}
}

func TestFrozenSharesNothingWithGraph(t *testing.T) {
	var g Graph[string]
	a, b := g.Add("a"), g.Add("b")
	g.Connect(a, b, 0)
	f := mustFreeze(t, &g)
	c := g.Add("c")
	g.Connect(a, c, 0)
	*g.Node(a) = "A"
	if f.Len() != 2 || len(f.Succ(a)) != 1 {
		t.Errorf("frozen graph grew to %d nodes, Succ(a) = %v", f.Len(), f.Succ(a))
	}
	if *g.Node(a) != "A" {
		t.Error("Node does not lead to the stored value")
	}
}

func TestAppendToResultWritesNothing(t *testing.T) {
	g := wavefront(2, 2)
	f := mustFreeze(t, g)
	_ = append(f.Succ(0), 99)
	_ = append(f.Pred(1), 99)
	if f.Succ(1)[0] != 3 || f.Pred(2)[0] != 0 {
		t.Errorf("append to a row wrote into the next: %v %v", f.Succ(1), f.Pred(2))
	}
	mine := append(g.Edges(), Edge{From: 9})
	g.Connect(0, 3, 0)
	if last := mine[len(mine)-1]; last.From != 9 {
		t.Errorf("Connect wrote into a copy of Edges: %v", last)
	}
}

func TestConnectPanicsOnMissingNode(t *testing.T) {
	for _, e := range [][2]ID{{0, 1}, {1, 0}, {-1, 0}, {0, -1}} {
		func() {
			defer func() {
				if r, ok := recover().(string); !ok || !strings.Contains(r, "both ends must exist") {
					t.Errorf("Connect%v: recovered %v", e, r)
				}
			}()
			var g Graph[int]
			g.Add(0)
			g.Connect(e[0], e[1], 0)
		}()
	}
}

func TestGrowMakesRoom(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() {
		var g Graph[int]
		g.Grow(100, 100)
		for i := range 100 {
			g.Add(i)
			g.Connect(ID(i), 0, 0)
		}
	}); n > 4 { // 2, and 2 more under the race detector
		t.Errorf("%v allocations, want at most 4", n)
	}
}

package dag

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// visit is the slow twin of Reaches: a search from one node.
func visit(f *Frozen, from ID, seen map[ID]bool) {
	if seen[from] {
		return
	}
	seen[from] = true
	for _, id := range f.Succ(from) {
		visit(f, id, seen)
	}
}

func checkReaches(t interface{ Fatalf(string, ...any) }, f *Frozen, queries [][2]ID) {
	seen := map[ID]map[ID]bool{}
	for i, got := range f.Reaches(queries) {
		from, to := queries[i][0], queries[i][1]
		if seen[from] == nil {
			seen[from] = map[ID]bool{}
			visit(f, from, seen[from])
		}
		if got != seen[from][to] {
			t.Fatalf("Reaches(%d, %d) = %v", from, to, got)
		}
	}
}

func TestReachesAgainstSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mustFreeze(t, random(t, true))
		if f.Len() == 0 {
			return
		}
		id := rapid.Map(rapid.IntRange(0, f.Len()-1), func(i int) ID { return ID(i) })
		pair := rapid.Custom(func(t *rapid.T) [2]ID { return [2]ID{id.Draw(t, "from"), id.Draw(t, "to")} })
		checkReaches(t, f, rapid.SliceOf(pair).Draw(t, "queries"))
	})
}

// All pairs of a graph with more sources than one sweep holds, ids against the
// order.
func TestReachesManySweeps(t *testing.T) {
	const n = 200
	var g Graph[int]
	for i := range n {
		g.Add(i)
	}
	for i := ID(n - 1); i > 0; i-- {
		g.Connect(i, i/2, 0)
		g.Connect(i, i/3*2, 1)
	}
	f, err := g.Freeze(func(e Edge) bool { return e.From != e.To })
	if err != nil {
		t.Fatal(err)
	}
	var queries [][2]ID
	for i := range ID(n * n) {
		queries = append(queries, [2]ID{i * 7 % n, i / n})
	}
	checkReaches(t, f, queries)
}

func TestReductionIsLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mustFreeze(t, random(t, true))
		r := f.Reduction()
		for id := range ID(f.Len()) {
			a, b := map[ID]bool{}, map[ID]bool{}
			visit(f, id, a)
			visit(r, id, b)
			if diff := cmp.Diff(a, b); diff != "" {
				t.Fatalf("nodes reached from %d (-before +after):\n%s", id, diff)
			}
			for _, to := range r.Succ(id) {
				for _, via := range r.Succ(id) {
					if c := map[ID]bool{}; via != to {
						if visit(r, via, c); c[to] {
							t.Fatalf("edge %d -> %d is not needed, there is a way over %d", id, to, via)
						}
					}
				}
			}
		}
	})
}

package dag

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// costs draws whole numbers, so that sums are exact and ties and zeros frequent.
func costs(t *rapid.T, n int) func(ID) float64 {
	c := rapid.SliceOfN(rapid.IntRange(0, 4), n, n).Draw(t, "costs")
	return func(id ID) float64 { return float64(c[id]) }
}

// longest is the slow twin of a longest path: it looks one step back, anew each
// time, with memory only to end in time.
func longest(f *Frozen, id ID, node func(ID) float64, edge func(from, to ID) int, memo map[ID]float64) float64 {
	if v, ok := memo[id]; ok {
		return v
	}
	best := 0.0
	for from := range ID(f.Len()) {
		if f.Has(from, id) {
			best = max(best, longest(f, from, node, edge, memo)+float64(edge(from, id)))
		}
	}
	memo[id] = best + node(id)
	return memo[id]
}

func TestLevelsAgainstRecursion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mustFreeze(t, random(t, true))
		weight := func(from, to ID) int { return int(from+2*to) % 4 }
		level, hops := f.Levels(weight), f.Levels(nil)
		zero := func(ID) float64 { return 0 }
		memo, memoHops := map[ID]float64{}, map[ID]float64{}
		for id := range ID(f.Len()) {
			if want := longest(f, id, zero, weight, memo); float64(level[id]) != want {
				t.Fatalf("level of %d is %d, want %v", id, level[id], want)
			}
			want := longest(f, id, zero, func(_, _ ID) int { return 1 }, memoHops)
			if float64(hops[id]) != want {
				t.Fatalf("unweighted level of %d is %d, want %v", id, hops[id], want)
			}
		}
	})
}

func TestCriticalAgainstRecursion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mustFreeze(t, random(t, true))
		cost := costs(t, f.Len())
		length, path := f.Critical(cost)
		want, memo := 0.0, map[ID]float64{}
		for id := range ID(f.Len()) {
			want = max(want, longest(f, id, cost, func(_, _ ID) int { return 0 }, memo))
		}
		sum := 0.0
		for i, id := range path {
			sum += cost(id)
			if i > 0 && !f.Has(path[i-1], id) {
				t.Fatalf("path %v: no edge to %d", path, id)
			}
		}
		if length != want || sum != want {
			t.Fatalf("length %v, path %v of cost %v, want %v", length, path, sum, want)
		}
	})
}

func TestCriticalTakesSmallestOfEqual(t *testing.T) {
	var g Graph[int]
	for i := range 6 {
		g.Add(i)
	}
	for _, e := range [][2]ID{{5, 2}, {4, 2}, {4, 1}, {5, 1}} {
		g.Connect(e[0], e[1], 0)
	}
	if length, path := mustFreeze(t, &g).Critical(nil); length != 2 || !slices.Equal(path, []ID{4, 1}) {
		t.Errorf("length %v path %v, want 2 [4 1]", length, path)
	}
}

// The slow twin of Width walks through the time unit by unit.
func TestWidthAgainstClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := mustFreeze(t, random(t, true))
		cost := costs(t, f.Len())
		end := map[ID]float64{}
		for id := range ID(f.Len()) {
			longest(f, id, cost, func(_, _ ID) int { return 0 }, end)
		}
		want := 0
		for now := range 4 * f.Len() {
			running := 0
			for id, e := range end {
				if e-cost(id) <= float64(now) && float64(now) < e {
					running++
				}
			}
			want = max(want, running)
		}
		if got := f.Width(cost); got != want {
			t.Fatalf("width %d, want %d", got, want)
		}
	})
}

// A cost that breaks the contract gives a useless answer, not a crash.
func TestNegativeCosts(t *testing.T) {
	f := mustFreeze(t, wavefront(4, 4))
	if _, path := f.Critical(func(ID) float64 { return -1 }); len(path) == 0 {
		t.Error("no path")
	}
	if w := f.Width(func(ID) float64 { return -1 }); w != 0 {
		t.Errorf("width %d, want 0", w)
	}
}

package levels_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/levels"
)

func parse(t testing.TB, spec string) *levels.Topology {
	t.Helper()
	topo, err := levels.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// anyTopology draws random labels, so ranks are interleaved and domains unequal.
func anyTopology(t *rapid.T) *levels.Topology {
	depth := rapid.IntRange(1, 5).Draw(t, "depth")
	lv := levels.Standard(depth)
	if depth == 5 {
		lv = append([]levels.Level{{Name: "gpu", Symbol: 'g'}}, levels.Standard(4)...)
	}
	path := rapid.SliceOfN(rapid.Int32Range(0, 2), depth-1, depth-1)
	paths := rapid.SliceOfN(path, 1, 24).Draw(t, "paths")
	topo, err := levels.New(lv, paths)
	if err != nil {
		t.Fatal(err)
	}
	for k := range depth - 1 {
		for r := range paths {
			for q := range paths {
				same := topo.Domain(levels.Rank(r), k) == topo.Domain(levels.Rank(q), k)
				if same != slices.Equal(paths[r][k:], paths[q][k:]) {
					t.Fatalf("%v: ranks %d and %d on level %d: same domain %v", topo, r, q, k, same)
				}
			}
		}
	}
	return topo
}

// checkNumbers checks that domains are dense and numbered in the order of their
// parents, then of their lowest ranks.
func checkNumbers(t failer, topo *levels.Topology) {
	t.Helper()
	top := topo.Depth() - 1
	if topo.Domains(top) != 1 {
		t.Fatalf("%d domains of the outermost level", topo.Domains(top))
	}
	for k := range top {
		type key struct {
			parent int32
			lowest levels.Rank
		}
		found := make([]*key, topo.Domains(k))
		for _, r := range everyone(topo) {
			if d := topo.Domain(r, k); found[d] == nil {
				found[d] = &key{topo.Domain(r, k+1), r}
			} else if found[d].parent != topo.Domain(r, k+1) {
				t.Fatalf("%v: level %d domain %d has two parents", topo, k, d)
			}
		}
		for d, f := range found {
			if f == nil {
				t.Fatalf("%v: level %d domain %d is empty", topo, k, d)
			}
			if d > 0 && (f.parent < found[d-1].parent || f.parent == found[d-1].parent && f.lowest < found[d-1].lowest) {
				t.Fatalf("%v: level %d domains %d and %d are in the wrong order", topo, k, d-1, d)
			}
		}
	}
}

func TestNewNumbersDomains(t *testing.T) {
	topo, err := levels.New(levels.Standard(3), [][]int32{{7, 4}, {7, 9}, {3, 4}, {7, 4}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := topo.String(), "m/numa s/node i/network tree: node0{numa0{0,3} numa1{2}} node1{numa2{1}}"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestNamed(t *testing.T) {
	topo, err := levels.Named(levels.Standard(2), [][]string{{"b"}, {"a"}, {"b"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := topo.DomainName(1, 0) + " " + topo.DomainName(2, 0) + " " + topo.DomainName(1, 1); got != "a b network0" {
		t.Errorf("names are %s", got)
	}
	if got := topo.String(); got != "b:2,a:1/rr" {
		t.Errorf("String() = %s", got)
	}
}

func TestNewErrors(t *testing.T) {
	one := [][]int32{{0}}
	for _, tc := range []struct {
		levels []levels.Level
		paths  [][]int32
		want   []string
	}{
		{nil, one, []string{"0 levels; allowed are 1 to 8"}},
		{make([]levels.Level, 9), one, []string{"9 levels; allowed are 1 to 8", "more"}},
		{levels.Standard(2), nil, []string{"0 ranks; allowed are 1 to 1048576"}},
		{levels.Standard(1), make([][]int32, levels.MaxRanks+1), []string{"1048577 ranks"}},
		{levels.Standard(2), [][]int32{{0}, {0, 1}, {}}, []string{"rank 1: 2 domains; with 2 levels each rank has 1", "rank 2: 0 domains"}},
		{levels.Standard(2), [][]int32{{-3}}, []string{"rank 0: level 0: domain -3; allowed are numbers from 0"}},
		{[]levels.Level{{"a", 's'}, {"b", 's'}}, one, []string{"level 1: symbol \"s\" is level 0's already"}},
		{[]levels.Level{{"a", 's'}, {"a", 'i'}}, one, []string{"level 1: name \"a\" is level 0's already"}},
		{[]levels.Level{{"a b", 's'}, {"", 'I'}}, one, []string{"name \"a b\" has ' '", "name \"\" has 0 characters; allowed are 1 to 255", "symbol \"I\"; allowed is one letter a to z"}},
	} {
		_, err := levels.New(tc.levels, tc.paths)
		wantError(t, err, tc.want...)
	}
	_, err := levels.Named(levels.Standard(2), [][]string{{"ok"}, {"a/b"}, {strings.Repeat("x", 256)}})
	wantError(t, err, "rank 1: level 0: name \"a/b\" has '/'", "rank 2: level 0: name", "has 256 characters")
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in:\n%v", part, err)
		}
	}
}

func TestSub(t *testing.T) {
	topo := parse(t, "4x2")
	for _, tc := range []struct {
		ranks []levels.Rank
		want  string
	}{
		{[]levels.Rank{0, 1, 2, 3}, "2x2"},
		{[]levels.Rank{0, 2, 1, 3}, "2x2/rr"},
		{[]levels.Rank{6, 4, 5}, "node3:1,node2:2"},
		{[]levels.Rank{7}, "node3:1"},
	} {
		sub, err := topo.Sub(tc.ranks)
		if err != nil {
			t.Fatal(err)
		}
		if got := sub.String(); got != tc.want {
			t.Errorf("Sub(%v) = %s, want %s", tc.ranks, got, tc.want)
		}
	}
	_, err := topo.Sub([]levels.Rank{3, 8, 3, -1})
	wantError(t, err, "place 1: rank 8; allowed are 0 to 7", "place 2: rank 3 was given before", "place 3: rank -1")
	_, err = topo.Sub(nil)
	wantError(t, err, "no ranks")
}

func TestSubProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		topo := anyTopology(rt)
		checkNumbers(rt, topo)
		ranks := rapid.Permutation(everyone(topo)).Draw(rt, "order")
		ranks = ranks[:rapid.IntRange(1, len(ranks)).Draw(rt, "size")]
		sub, err := topo.Sub(ranks)
		if err != nil {
			rt.Fatal(err)
		}
		checkNumbers(rt, sub)
		for k := range topo.Depth() - 1 {
			for i, r := range ranks {
				if got, want := sub.DomainName(levels.Rank(i), k), topo.DomainName(r, k); got != want {
					rt.Fatalf("Sub(%v) of %v: rank %d is in %s, was in %s", ranks, topo, i, got, want)
				}
				for j, q := range ranks {
					was := topo.Domain(r, k) == topo.Domain(q, k)
					if is := sub.Domain(levels.Rank(i), k) == sub.Domain(levels.Rank(j), k); is != was {
						rt.Fatalf("Sub(%v) of %v: ranks %d and %d share level %d: %v", ranks, topo, i, j, k, is)
					}
				}
			}
		}
		whole, err := topo.Sub(everyone(topo))
		if err != nil || !whole.Equal(topo) {
			rt.Fatalf("Sub of all of %v is %v, %v", topo, whole, err)
		}
	})
}

// Strings must tell topologies apart: they stand for them in digests.
func TestStringTellsApart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := anyTopology(rt), anyTopology(rt)
		if (a.String() == b.String()) != a.Equal(b) {
			rt.Fatalf("equal is %v for\n%v\n%v", a.Equal(b), a, b)
		}
		if back, err := levels.Parse(a.String()); err == nil && !back.Equal(a) {
			rt.Fatalf("%v reads back as %v", a, back)
		}
	})
}

func TestStandard(t *testing.T) {
	got := ""
	for depth := range 6 {
		got += fmt.Sprintln(levels.Standard(depth))
	}
	want := "[]\n[s/node]\n[s/node i/network]\n[m/numa s/node i/network]\n[m/numa s/node i/network w/site]\n[]\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestDealt(t *testing.T) {
	for _, test := range []struct {
		spec string
		most int
		want []levels.Rank
	}{
		{"2x2", 9, []levels.Rank{0, 2, 1, 3}},
		{"2x2", 3, []levels.Rank{0, 2, 1}},
		{"2x2/rr", 9, []levels.Rank{0, 1, 2, 3}},
		{"a:3,b:1", 9, []levels.Rank{0, 3, 1, 2}},
		{"1", 9, []levels.Rank{0}},
		{"2x2", 0, nil},
	} {
		on := parse(t, test.spec)
		if got := on.Dealt(test.most); !slices.Equal(got, test.want) {
			t.Errorf("%d of %s: %v, want %v", test.most, test.spec, got, test.want)
		}
	}
}

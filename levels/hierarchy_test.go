package levels_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/levels"
)

// draw writes a hierarchy as "s [0 1*] [2* 3] | i [1* 2]": leaders are starred.
func draw(h *levels.Hierarchy) string {
	var all []string
	for k := range h.Depth() {
		line := string(rune(h.Level(k).Symbol))
		for _, g := range h.Groups(k) {
			var ranks []string
			for i, r := range g.Ranks {
				ranks = append(ranks, fmt.Sprint(r)+strings.Repeat("*", b2i(i == g.Leader)))
			}
			line += fmt.Sprint(" ", ranks)
		}
		all = append(all, line)
	}
	return strings.Join(all, " | ")
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestHierarchy(t *testing.T) {
	for _, tc := range []struct {
		spec    string
		root    levels.Rank
		want    string
		ordered bool
	}{
		{"4x2", 0, "s [0* 1] [2* 3] [4* 5] [6* 7] | i [0* 2 4 6]", true},
		{"4x2", 5, "s [0* 1] [2* 3] [4 5*] [6* 7] | i [0 2 5* 6]", true},
		{"2x3/rr", 3, "s [0* 2 4] [1 3* 5] | i [0 3*]", false},
		{"a:3,b:1,c:2", 1, "s [0 1* 2] [3*] [4* 5] | i [1* 3 4]", true},
		{"a:3,b:1,c:2/rr", 0, "s [0* 3 5] [1*] [2* 4] | i [0* 1 2]", false},
		// The leader of the root's node is not its lowest rank, so leaders don't
		// come in the order of their nodes.
		{"2x2/rr", 2, "s [0 2*] [1* 3] | i [1 2*]", false},
		{"5", 2, "s [0 1 2* 3 4]", true},
		{"1x3", 1, "s [0 1* 2] | i [1*]", true},
		{"3x1", 2, "s [0*] [1*] [2*] | i [0 1 2*]", true},
		{"1", 0, "s [0*]", true},
		{"2x2x2", 3, "m [0* 1] [2 3*] [4* 5] [6* 7] | s [0 3*] [4* 6] | i [3* 4]", true},
		{"2x2x2/rr", 6, "m [0* 4] [2 6*] [1* 5] [3* 7] | s [0 6*] [1* 3] | i [1 6*]", false},
		{"2x1x2x1", 0, "m [0*] [1*] [2*] [3*] | s [0* 1] [2* 3] | i [0*] [2*] | w [0* 2]", true},
	} {
		t.Run(fmt.Sprintf("%s,root=%d", tc.spec, tc.root), func(t *testing.T) {
			h := parse(t, tc.spec).Hierarchy(tc.root)
			if got := draw(h); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
			if got := h.Ordered(); got != tc.ordered {
				t.Errorf("Ordered() = %v", got)
			}
			checkHierarchy(t, h)
		})
	}
}

func TestFlat(t *testing.T) {
	h := parse(t, "2x2/rr").Flat(2)
	if got, want := draw(h), "i [0 1 2* 3]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !h.Ordered() {
		t.Error("one group of all ranks is not ordered")
	}
	checkHierarchy(t, h)
}

// TestUnder: at each level the ranks that a group's members speak for are all ranks
// of its domain, each once.
func TestUnder(t *testing.T) {
	for _, spec := range []string{"1", "4", "4x2/rr", "a:3,b:1,c:2", "2x3x2"} {
		topo := parse(t, spec)
		for _, h := range []*levels.Hierarchy{topo.Hierarchy(0), topo.Flat(0)} {
			for k := range h.Depth() {
				seen := map[levels.Rank]bool{}
				for _, g := range h.Groups(k) {
					for _, r := range g.Ranks {
						under := h.Under(r, k)
						if !slices.Contains(under, r) || !slices.IsSorted(under) {
							t.Errorf("%s, level %d: rank %d speaks for %v", spec, k, r, under)
						}
						for _, u := range under {
							if seen[u] {
								t.Errorf("%s, level %d: rank %d is spoken for twice", spec, k, u)
							}
							seen[u] = true
						}
					}
				}
				if len(seen) != topo.Size() {
					t.Errorf("%s, level %d: %d of %d ranks are spoken for", spec, k, len(seen), topo.Size())
				}
			}
		}
	}
}

func TestHierarchyRootOutOfRange(t *testing.T) {
	for _, root := range []levels.Rank{-1, 8} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, fmt.Sprintf("root %d of a topology with ranks 0 to 7", root)) {
					t.Errorf("panic says %s", got)
				}
			}()
			parse(t, "4x2").Hierarchy(root)
		}()
	}
}

func TestHierarchyProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		topo := anyTopology(rt)
		root := levels.Rank(rapid.IntRange(0, topo.Size()-1).Draw(rt, "root"))
		checkHierarchy(rt, topo.Hierarchy(root))
		checkHierarchy(rt, topo.Flat(root))
	})
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkHierarchy derives the groups again, slowly, from what a group is.
func checkHierarchy(t failer, h *levels.Hierarchy) {
	t.Helper()
	topo, members := h.Topology(), everyone(h.Topology())
	base, ordered := topo.Depth()-h.Depth(), true
	for k := range h.Depth() {
		if h.Level(k) != topo.Level(base+k) {
			t.Fatalf("level %d is %v", k, h.Level(k))
		}
		var leaders []levels.Rank
		widest := 0
		for d, g := range h.Groups(k) {
			var ranks []levels.Rank
			for _, r := range members {
				if topo.Domain(r, base+k) == int32(d) {
					ranks = append(ranks, r)
				}
			}
			lead := ranks[0]
			if slices.Contains(ranks, h.Root()) {
				lead = h.Root()
			}
			if diff := cmp.Diff(ranks, g.Ranks); diff != "" || g.Lead() != lead || g.Level != k || g.Index != d {
				t.Fatalf("%v root %d: level %d group %d is %+v, lead %d want %d; ranks (-want +got) %s", topo, h.Root(), k, d, *g, g.Lead(), lead, diff)
			}
			leaders = append(leaders, lead)
			widest = max(widest, len(ranks))
		}
		if h.Widest(k) != widest {
			t.Fatalf("%v: Widest(%d) = %d, want %d", topo, k, h.Widest(k), widest)
		}
		if len(h.Groups(k)) != topo.Domains(base+k) {
			t.Fatalf("%d groups for %d domains", len(h.Groups(k)), topo.Domains(base+k))
		}
		checkMembership(t, h, k, members)
		slices.Sort(leaders)
		members = leaders
		ordered = ordered && contiguous(topo, base+k)
	}
	if len(members) != 1 || members[0] != h.Root() {
		t.Fatalf("%v: the outermost leaders are %v, root is %d", topo, members, h.Root())
	}
	if h.Ordered() != ordered {
		t.Fatalf("%v: Ordered() = %v", topo, h.Ordered())
	}
}

func checkMembership(t failer, h *levels.Hierarchy, k int, members []levels.Rank) {
	t.Helper()
	for _, r := range everyone(h.Topology()) {
		in := slices.Contains(members, r)
		g := h.Group(r, k)
		if in != (g != nil) || in && g.Ranks[g.Pos(r)] != r {
			t.Fatalf("%v: rank %d at level %d is in %v", h.Topology(), r, k, g)
		}
		for _, other := range h.Groups(k) {
			if other != g && other.Pos(r) != -1 {
				t.Fatalf("%v: rank %d at level %d is in %v too", h.Topology(), r, k, other)
			}
		}
	}
}

// contiguous is the slow twin of what Ordered is made of.
func contiguous(topo *levels.Topology, k int) bool {
	last := map[int32]levels.Rank{}
	for _, r := range everyone(topo) {
		d := topo.Domain(r, k)
		if before, ok := last[d]; ok && before != r-1 {
			return false
		}
		last[d] = r
	}
	return true
}

func everyone(topo *levels.Topology) (all []levels.Rank) {
	for r := range topo.Size() {
		all = append(all, levels.Rank(r))
	}
	return all
}

func BenchmarkHierarchy(b *testing.B) {
	for _, spec := range []string{"64x64", "64x64/rr", "32x4x32"} {
		b.Run("ranks=4096/topo="+strings.ReplaceAll(spec, "/", ","), func(b *testing.B) {
			topo := parse(b, spec)
			b.ReportAllocs()
			for b.Loop() {
				topo.Hierarchy(1)
			}
		})
	}
}

package nbc

import (
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

func groupOf(n int) *submodules.Call {
	return &submodules.Call{Task: tasks.Task{Group: &levels.Group{Ranks: make([]levels.Rank, n)}}, Elem: 4}
}

// TestFold: members are the largest power of two, in rank order; each rank stands
// for one or is folded into its neighbour's; keep always stands.
func TestFold(t *testing.T) {
	for n := 1; n <= 70; n++ {
		for keep := range n {
			f := newFold(groupOf(n), keep)
			if f.members > n || 2*f.members <= n || f.members&(f.members-1) != 0 {
				t.Fatalf("n=%d: %d members", n, f.members)
			}
			if f.index(f.member(keep)) != keep {
				t.Errorf("n=%d: %d, to be kept, is folded away", n, keep)
			}
			last, away := 0, 0
			for i := range n {
				m, partner := f.member(i), f.partner(i)
				if m < last || m > last+1 || m >= f.members {
					t.Fatalf("n=%d: %d is in member %d after %d", n, i, m, last)
				}
				last = m
				if f.index(m) != i {
					away++
					if f.index(m) != partner {
						t.Errorf("n=%d keep=%d: %d is folded into %d, its partner is %d", n, keep, i, f.index(m), partner)
					}
				}
			}
			if away != n-f.members {
				t.Errorf("n=%d keep=%d: %d ranks are folded away, want %d", n, keep, away, n-f.members)
			}
		}
	}
}

func TestHalves(t *testing.T) {
	for _, tc := range []struct{ n, first int64 }{{0, 0}, {4, 4}, {8, 4}, {12, 8}, {28, 16}} {
		a, b := (part{100, tc.n}).halves(4)
		if a != (part{100, tc.first}) || b != (part{100 + tc.first, tc.n - tc.first}) {
			t.Errorf("%d bytes: halves %+v and %+v", tc.n, a, b)
		}
		if a.join(b) != (part{100, tc.n}) || b.join(a) != (part{100, tc.n}) {
			t.Errorf("%d bytes: the halves join to %+v and %+v", tc.n, a.join(b), b.join(a))
		}
	}
}

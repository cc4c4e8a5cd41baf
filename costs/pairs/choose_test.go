package pairs

import (
	"runtime"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Pairs are apart, of different domains, and as many as the domains have digits.
func TestAt(t *testing.T) {
	for _, tc := range []struct {
		spec  string
		level int
		want  int
	}{
		{"2x1", 0, 0}, {"2x1", 1, 1}, {"3x1", 1, 1}, {"16x1", 1, 4}, {"16x4", 1, 4}, {"16x4", 0, 2}, {"1024x1", 1, 10}, {"5x3/rr", 1, 2}, {"2x2x3", 2, 1},
	} {
		on := tasktest.Topology(t, tc.spec)
		pairs := At(on, tc.level)
		if len(pairs) != tc.want {
			t.Errorf("%s level %d: %v, want %d pairs", tc.spec, tc.level, pairs, tc.want)
		}
		var all []int
		for _, p := range pairs {
			all = append(all, p[:]...)
			if meet := on.Meet(levels.Rank(p[0]), levels.Rank(p[1])); meet != tc.level {
				t.Errorf("%s: %v meet at level %d, want %d", tc.spec, p, meet, tc.level)
			}
		}
		if slices.Sort(all); len(slices.Compact(all)) != 2*len(pairs) {
			t.Errorf("%s: a rank is in two of %v", tc.spec, pairs)
		}
	}
}

// Emulated nodes share the processors of their one host.
func TestCores(t *testing.T) {
	for _, test := range []struct {
		spec  string
		hosts []int64
		inAll int // hosts whose processors all ranks share; 0: each node has its own
	}{
		{"2x2", []int64{5, 5, 5, 5}, 1},
		{"2x2", []int64{5, 5, 6, 6}, 0},
		{"3x1", []int64{5, 6, 5}, 2},
		{"1x3", []int64{7, 7, 7}, 0},
	} {
		on := tasktest.Topology(t, test.spec)
		if got := Cores(on, test.hosts); got.InAll != test.inAll*runtime.NumCPU() || (got.PerNode > 0) == (got.InAll > 0) {
			t.Errorf("%s on hosts %v: %+v", test.spec, test.hosts, got)
		}
	}
	if a, b := HostNumber(), HostNumber(); a != b || a < 0 {
		t.Errorf("this host is number %d, then %d", a, b)
	}
	if copies, adds := OwnSpeed(); copies <= 0 || adds <= 0 || copies > 1000 || adds > 1000 {
		t.Errorf("a byte takes %v ns to copy and %v to add", copies, adds)
	}
}

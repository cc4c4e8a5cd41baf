package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Each node has one leader: the root on its own node, else the node's first rank.
func TestLeadersOf(t *testing.T) {
	for _, test := range []struct {
		topo string
		root levels.Rank
		want []levels.Rank
	}{
		{"3x2", 0, []levels.Rank{0, 2, 4}},
		{"3x2", 3, []levels.Rank{0, 3, 4}},
		{"2x2/rr", 0, []levels.Rank{0, 1}},
	} {
		r := tasktest.Request(tasks.Bcast, 1024)
		r.Root = test.root
		got := LeadersOf(tasktest.Topology(t, test.topo), r, tasktest.Plan(t, "shape=han,fs=all,w=1,i=adapt/chain,s=sm"))
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s, root %d: %v; want %v", test.topo, test.root, got, test.want)
		}
	}
}

// A task settles from the segment on that is named, or not at all.
func TestSettledText(t *testing.T) {
	s := costs.Series{NS: []float64{3000, 1400, 1600}}
	if got := settledText(s); got != "not settled: 3 1 2" {
		t.Errorf("%q", got)
	}
	s.Settled, s.From = true, 1
	if got := settledText(s); got != "settled from #1 on: 3 1 2" {
		t.Errorf("%q", got)
	}
}

// Plans are read in their order; without any the environment's is the only one.
func TestReadPlans(t *testing.T) {
	t.Setenv("TIERFLOW_PLAN", "w=5")
	for _, test := range []struct {
		given   []string
		windows []int
		want    string
	}{
		{nil, []int{5}, ""},
		{[]string{"w=2", "w=3"}, []int{2, 3}, ""},
		{[]string{"w=2", ""}, []int{2, 5}, ""},
		{[]string{"w=2", "i=nosuch"}, nil, "--plan: "},
		{slices.Repeat([]string{"w=2"}, MaxPlans+1), nil, "--plan: 17 plans; at most 16"},
	} {
		forced, err := ReadPlans(&kit.Problem{}, all.Submodules(), test.given)
		var windows []int
		for _, f := range forced {
			windows = append(windows, f.For(tasks.Bcast).Window)
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || err == nil && !slices.Equal(windows, test.windows) {
			t.Errorf("%q: windows %v, %v; want %v, %q", test.given, windows, err, test.windows, test.want)
		}
	}
}

// Each rank that is a root by --root all/N is measured once, in an operation that has roots.
func TestRootsOf(t *testing.T) {
	b := &Coll{every: 3}
	b.Job = fakeJob{on: tasktest.Topology(t, "4x2")}
	bcast := tasktest.Request(tasks.Bcast, 8)
	if got := b.rootsOf(bcast); !slices.Equal(got, []levels.Rank{0, 3, 6}) {
		t.Errorf("every third rank of 8: %v", got)
	}
	if got := b.rootsOf(tasktest.Request(tasks.Allreduce, 8)); !slices.Equal(got, []levels.Rank{0}) {
		t.Errorf("of an allreduce: %v", got)
	}
	b.every, bcast.Root = 0, 5
	if got := b.rootsOf(bcast); !slices.Equal(got, []levels.Rank{5}) {
		t.Errorf("of --root 5: %v", got)
	}
}

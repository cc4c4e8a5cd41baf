package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/rules"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Rules are told the truth about requests and layouts.
func TestFacts(t *testing.T) {
	differ, err := tasks.NewCounts([]int{1, 5, 0, 3})
	if err != nil {
		t.Fatal(err)
	}
	all := []rules.Param{
		rules.Ranks, rules.Nodes, rules.PerNode, rules.Balanced, rules.Ordered, rules.Processes, rules.Bytes, rules.Total, rules.Longest, rules.Blocks, rules.Count,
		rules.Element, rules.Root, rules.Commutative, rules.BuiltIn, rules.Regular, rules.Parts, rules.Free, rules.TreeForced,
	}
	for _, test := range []struct {
		r          tasks.Request
		on, forced string
		want       string
	}{
		{
			tasks.Request{Coll: tasks.Bcast, Type: tasks.Float64, Count: 6, Root: 3},
			"2x2", "w=2",
			"ranks=4 nodes=2 pernode=2 balanced=1 ordered=1 processes=1 bytes=48 total=48 longest=48 blocks=1 count=6 element=8 root=3 commutative=1 builtin=1 regular=1 parts=1 free=1 treeforced=0",
		},
		{
			tasks.Request{Coll: tasks.Reduce, Type: tasks.Float64, Count: 6, Op: tasks.Sum},
			"2x2/rr", "ib=adapt/chain",
			"ranks=4 nodes=2 pernode=2 balanced=1 ordered=0 processes=1 bytes=48 total=48 longest=48 blocks=1 count=6 element=8 root=0 commutative=1 builtin=1 regular=1 parts=1 free=0 treeforced=0",
		},
		{
			tasks.Request{Coll: tasks.Allgather, Type: tasks.Int16, Count: 6},
			"a:3,b:1", "order=tree",
			"ranks=4 nodes=2 pernode=3 balanced=0 ordered=1 processes=1 bytes=12 total=48 longest=12 blocks=4 count=6 element=2 root=0 commutative=1 builtin=1 regular=1 parts=4 free=0 treeforced=1",
		},
		{
			tasks.Request{Coll: tasks.Allgather, Type: tasks.Int16, Count: differ.Max(), Counts: differ},
			"4", "",
			"ranks=4 nodes=1 pernode=4 balanced=1 ordered=1 processes=1 bytes=5 total=18 longest=10 blocks=4 count=5 element=2 root=0 commutative=1 builtin=1 regular=0 parts=2 free=1 treeforced=0",
		},
		{
			tasks.Request{Coll: tasks.Barrier},
			"4x1", "",
			"ranks=4 nodes=4 pernode=1 balanced=1 ordered=1 processes=1 bytes=0 total=0 longest=0 blocks=1 count=0 element=0 root=0 commutative=1 builtin=1 regular=1 parts=1 free=1 treeforced=0",
		},
	} {
		f := &builtin.Facts{Asked: builtin.Ask(test.r, tasktest.Topology(t, test.on)), Forced: tasktest.Plan(t, test.forced)}
		var got []string
		for _, p := range all {
			got = append(got, fmt.Sprintf("%v=%d", p, f.Value(p)))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%v on %s: %s", test.r, test.on, text)
		}
	}
}

package circulant_test

import (
	"flag"
	"strconv"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/submodules/internal/circulant"
	"github.com/tierflow/tierflow/submodules/submoduletest"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

var proveAll = flag.Bool("circulant.all", false, "prove all operations for every number of ranks to 300, which takes ten minutes")

// TestProved: the programs of groups of 1 to 300 ranks are right, under roots that
// move on. An allgather has n² messages and takes n³ steps to prove, so of its like only
// some groups are proved without -circulant.all; what they stand on is in TestTurns. The
// conformance suite has more requests, and groups of up to nine.
func TestProved(t *testing.T) {
	for n := 1; n <= 300; n++ {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			for _, r := range requests(levels.Rank(n * 5 / 7)) {
				rooted := r.Coll == tasks.Bcast || r.Coll == tasks.Reduce
				if rooted || n <= 32 || n%31 == 3 && n < 130 || *proveAll {
					r.Type, r.Count = tasks.Int32, int64(1+n%11)
					if !rooted && n > 100 {
						r.Count = 1
					}
					prove(t, n, r)
				}
			}
		})
	}
}

func requests(root levels.Rank) []tasks.Request {
	return []tasks.Request{
		{Coll: tasks.Bcast, Root: root},
		{Coll: tasks.Reduce, Op: tasks.Sum, Root: root},
		{Coll: tasks.Allgather},
		{Coll: tasks.ReduceScatter, Op: tasks.Sum},
		{Coll: tasks.Allreduce, Op: tasks.Sum},
	}
}

func prove(t *testing.T, n int, r tasks.Request) {
	t.Helper()
	shape := tasks.Flat
	if r.Coll == tasks.Allreduce {
		shape = tasks.AR
	}
	plan := tasks.Plan{Shape: shape, Segment: tasks.Whole, Window: 1}
	plan = plan.Set("s", tasks.Choice{Submodule: submodules.Circulant, Algorithm: submodules.Blocks, Inner: 8})
	progs := submoduletest.Compile(t, r, tasktest.Topology(t, strconv.Itoa(n)), plan, submodules.Registry{circulant.Circulant{}})
	if _, err := check.Programs(progs); err != nil {
		t.Errorf("%v on %d ranks: %v", r, n, err)
	}
}

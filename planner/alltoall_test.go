package planner_test

import (
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// An alltoall's memory does not grow with the message: apart it needs at most three windows
// of segments for each partner inside the node, and none for others; in place as much for
// each of up to 16 partners in the node and of 16 elsewhere.
func TestAlltoallMemory(t *testing.T) {
	for _, spec := range []string{"1x4", "4x1", "4x2", "24x2"} {
		on := tasktest.Topology(t, spec)
		for _, inPlace := range []bool{false, true} {
			r := tasks.Request{Coll: tasks.Alltoall, Type: tasks.Float32, InPlace: inPlace, Count: 8 << 20 / 4}
			p, _ := builtin.Choose(r, on, tasks.Plan{})
			for _, rank := range []levels.Rank{0, levels.Rank(on.Size() - 1)} {
				partners := int64(min(on.Size()-1, 17))
				needs, most := memoryOf(t, r, on, p, rank), 3*int64(p.Window)*p.Segment*partners
				if r.Count *= 4; needs > most || memoryOf(t, r, on, p, rank) != needs {
					t.Errorf("%s, in place %v, %v: rank %d needs %d bytes, over %d, or more for more", spec, inPlace, p, rank, needs, most)
				}
				r.Count /= 4
			}
		}
	}
}

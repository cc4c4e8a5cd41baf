package tasks_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// TestFlatShapes: on nodes of several ranks a flat shape has tasks of all ranks only, also
// where an operation that doesn't commute meets ranks that are dealt out in turns.
func TestFlatShapes(t *testing.T) {
	last := tasks.UserOp("last", false, func(_, b int32) int32 { return b })
	for _, tc := range []struct {
		shape tasks.Shape
		r     tasks.Request
		want  string
	}{
		{tasks.FlatAR, tasks.Request{Coll: tasks.Allreduce, Op: last}, "iar"},
		{tasks.FlatAR, tasks.Request{Coll: tasks.Barrier}, "iar"},
		{tasks.FlatRSAG, tasks.Request{Coll: tasks.Allreduce, Op: last}, "irs iag"},
		{tasks.FlatSAG, tasks.Request{Coll: tasks.Bcast, Root: 4}, "is iag"},
	} {
		if tc.r.Coll.HasData() {
			tc.r.Type, tc.r.Count = tasks.Int32, 100
		}
		for _, spec := range []string{"3x2", "3x2/rr"} {
			topo := tasktest.Topology(t, spec)
			g, err := tasks.Expand(tc.r, topo, tasks.Plan{Shape: tc.shape, Segment: tasks.Whole, Window: 1}, 5)
			if err != nil {
				t.Errorf("%v, shape %v on %s: %v", tc.r, tc.shape, spec, err)
				continue
			}
			var kinds []string
			for _, ph := range g.Phases {
				kinds = append(kinds, ph.Kind.String())
				if n := len(g.Groups(ph)[0].Ranks); n != topo.Size() {
					t.Errorf("%v, shape %v on %s: %v in groups of %d ranks", tc.r, tc.shape, spec, ph.Kind, n)
				}
			}
			if got := strings.Join(kinds, " "); got != tc.want || !tc.shape.IsFlat() {
				t.Errorf("%v, shape %v on %s: tasks %s, flat %v; want %s, true", tc.r, tc.shape, spec, got, tc.shape.IsFlat(), tc.want)
			}
		}
	}
}

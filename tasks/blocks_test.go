package tasks_test

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// TestParts: members' parts cover the ranks they speak for; whole blocks of
// neighbours are one run.
func TestParts(t *testing.T) {
	for _, tc := range []struct {
		coll        tasks.Collective
		topo, plan  string
		rank, phase int
		want        []string // by segment
	}{
		{tasks.Allgather, "2x2", "fs=all", 0, 1, []string{"[[recv[0:8]] [recv[8:16]]]"}},
		{tasks.Allgather, "2x2/rr", "fs=all", 0, 1, []string{"[[recv[0:4] recv[8:12]] [recv[4:8] recv[12:16]]]"}},
		{tasks.Allgather, "2x2", "fs=3", 0, 1, []string{
			"[[recv[0:3] recv[4:7]] [recv[8:11] recv[12:15]]]",
			"[[recv[3:4] recv[7:8]] [recv[11:12] recv[15:16]]]",
		}},
		{tasks.Allgather, "a:1,b:2", "fs=all", 1, 0, []string{"[[recv[4:8]] [recv[8:12]]]"}},
		{tasks.Gather, "2x2", "fs=3", 2, 0, []string{"[[scratch[0:3]] [scratch[3:6]]]", "[[scratch[64:65]] [scratch[65:66]]]"}},
		{tasks.Gather, "2x2", "fs=all", 3, 0, []string{"[]"}},
	} {
		p, err := tasks.ParsePlan("shape=han,w=1," + tc.plan)
		if err != nil {
			t.Fatal(err)
		}
		r := tasks.Request{Coll: tc.coll, Count: 4, Type: tasks.Uint8}
		g, err := tasks.Expand(r, topology(t, tc.topo), p, levels.Rank(tc.rank))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, task := range g.Nodes() {
			if int(task.Phase) == tc.phase {
				got = append(got, fmt.Sprint(g.Parts(&g.Nodes()[i])))
			}
		}
		if diff := gocmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%v on %s, rank %d (-want +got):\n%s", r, tc.topo, tc.rank, diff)
		}
	}
}

// TestPassesKeepPlaces: blocks of a pass lie as far apart as those of the whole.
func TestPassesKeepPlaces(t *testing.T) {
	r := tasks.Request{Coll: tasks.Allgather, Count: 3000, Type: tasks.Uint16}
	whole, n, rest, err := tasks.Passes(r, tasks.Plan{Shape: tasks.Flat, Segment: 2, Window: 1})
	if err != nil || n != 2 || whole.Stride() != 6000 || rest.Stride() != 6000 || rest.Count != 952 {
		t.Errorf("%d passes of %+v and %+v, %v", n, whole, rest, err)
	}
	if _, recv := rest.Buffers(0, 4); recv != 3*6000+2*952 {
		t.Errorf("the last pass reaches %d bytes far", recv)
	}
}

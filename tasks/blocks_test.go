package tasks_test

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// TestParts: members' parts cover the ranks they speak for, or shards of a segment;
// whole blocks of neighbours are one run, empty ones are none.
func TestParts(t *testing.T) {
	block := func(c tasks.Collective) tasks.Request {
		return tasks.Request{Coll: c, Count: 4, Type: tasks.Uint8, Op: tasks.Sum}
	}
	counts, err := tasks.NewCounts([]int{1, 0, 3, 2})
	if err != nil {
		t.Fatal(err)
	}
	differ := func(c tasks.Collective) tasks.Request {
		r := block(c)
		r.Counts, r.Count = counts, 3
		return r
	}
	inPlace := func(r tasks.Request) tasks.Request { r.InPlace = true; return r }
	for _, tc := range []struct {
		r           tasks.Request
		topo, plan  string
		rank, phase int
		want        []string // by segment: the parts, and where this rank's own is
	}{
		{block(tasks.Allgather), "2x2", "fs=all", 0, 1, []string{"[[recv[0:8]] [recv[8:16]]] [recv[0:8]]"}},
		{block(tasks.Allgather), "2x2/rr", "fs=all", 0, 1, []string{"[[recv[0:4] recv[8:12]] [recv[4:8] recv[12:16]]] [recv[0:4] recv[8:12]]"}},
		{block(tasks.Allgather), "2x2", "fs=3", 0, 1, []string{
			"[[recv[0:3] recv[4:7]] [recv[8:11] recv[12:15]]] [recv[0:3] recv[4:7]]",
			"[[recv[3:4] recv[7:8]] [recv[11:12] recv[15:16]]] [recv[3:4] recv[7:8]]",
		}},
		{block(tasks.Allgather), "a:1,b:2", "fs=all", 1, 0, []string{"[[recv[4:8]] [recv[8:12]]] [send[0:4]]"}},
		{differ(tasks.Allgather), "2x2", "fs=all", 2, 1, []string{"[[recv[0:1]] [recv[1:6]]] [recv[1:6]]"}},
		{differ(tasks.Allgather), "4", "fs=2", 1, 0, []string{
			"[[recv[0:1]] [] [recv[1:3]] [recv[4:6]]] []",
			"[[] [] [recv[3:4]] []] []",
		}},
		{block(tasks.Gather), "2x2", "fs=3", 2, 0, []string{
			"[[scratch[0:3]] [scratch[3:6]]] [send[0:3]]", "[[scratch[64:65]] [scratch[67:68]]] [send[3:4]]",
		}},
		{block(tasks.Gather), "2x2", "fs=all", 3, 0, []string{"[[Region(0)[0:4]] [Region(0)[0:4]]] [send[0:4]]"}},
		{block(tasks.Scatter), "2x2", "fs=all", 0, 0, []string{"[[send[0:8]] [send[8:16]]] [send[0:8]]"}},
		{block(tasks.Scatter), "2x2", "fs=all", 0, 1, []string{"[[send[0:4]] [send[4:8]]] [recv[0:4]]"}},
		{inPlace(block(tasks.Scatter)), "2x2", "fs=all", 0, 1, []string{"[[send[0:4]] [send[4:8]]] [send[0:4]]"}},
		{block(tasks.Scatter), "2x2", "fs=all", 2, 0, []string{"[[Region(0)[0:8]] [Region(0)[0:8]]] [scratch[0:8]]"}},
		{block(tasks.Scatter), "2x2", "fs=all", 2, 1, []string{"[[scratch[0:4]] [scratch[4:8]]] [recv[0:4]]"}},
		{block(tasks.ReduceScatter), "2x2", "fs=all", 2, 1, []string{"[[scratch[0:8]] [scratch[8:16]]] [scratch[8:16]]"}},
		{block(tasks.ReduceScatter), "2x2", "fs=all", 3, 2, []string{"[[Region(0)[0:4]] [Region(0)[0:4]]] [recv[0:4]]"}},
		{block(tasks.ReduceScatter), "2", "fs=3", 1, 0, []string{"[[send[0:3]] [send[4:7]]] [recv[0:3]]", "[[send[3:4]] [send[7:8]]] [recv[3:4]]"}},
		{inPlace(differ(tasks.ReduceScatter)), "4", "fs=all", 3, 0, []string{"[[recv[0:1]] [] [recv[1:4]] [recv[4:6]]] [recv[0:2]]"}},
		{block(tasks.Allreduce), "2x2", "shape=rsag,fs=3", 0, 1, []string{"[[recv[0:2]] [recv[2:3]]] [recv[0:2]]", "[[recv[3:4]] []] [recv[3:4]]"}},
		{block(tasks.Allreduce), "a:2,b:3", "shape=lanes,fs=3", 4, 0, []string{
			"[[send[0:2]] [send[2:3]] []] []", "[[send[3:4]] [] []] []",
		}},
	} {
		p := tasktest.Plan(t, "shape=han,w=1,"+tc.plan)
		g, err := tasks.Expand(tc.r, tasktest.Topology(t, tc.topo), p, levels.Rank(tc.rank))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, task := range g.Nodes() {
			if int(task.Phase) == tc.phase {
				parts, held := g.Parts(&g.Nodes()[i])
				got = append(got, fmt.Sprint(parts, held))
			}
		}
		if diff := gocmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%v on %s, rank %d (-want +got):\n%s", tc.r, tc.topo, tc.rank, diff)
		}
	}
}

// TestPassesKeepPlaces: blocks of a pass lie as far apart as those of the whole.
func TestPassesKeepPlaces(t *testing.T) {
	r := tasks.Request{Coll: tasks.Allgather, Count: 3000, Type: tasks.Uint16}
	whole, n, rest, err := tasks.Passes(r, tasks.Plan{Shape: tasks.Flat, Segment: 2, Window: 1})
	if err != nil || n != 2 || rest.Count != 952 {
		t.Errorf("%d passes of %+v and %+v, %v", n, whole, rest, err)
	}
	for _, pass := range []tasks.Request{whole, rest} {
		if off, _ := pass.Block(1); off != 6000 {
			t.Errorf("%+v: block 1 is at %d, want 6000", pass, off)
		}
	}
	if _, recv := rest.Buffers(0, 4); recv != 3*6000+2*952 {
		t.Errorf("the last pass reaches %d bytes far", recv)
	}
}

// Blocks of neighbours are one run, however short they are.
func TestRuns(t *testing.T) {
	for _, count := range []int64{1, 4} {
		r := tasks.Request{Coll: tasks.Allgather, Count: count, Type: tasks.Int8}
		g, err := tasks.Expand(r, tasktest.Topology(t, "4"), tasktest.Plan(t, "shape=han,fs=all,w=1"), 0)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("[recv[0:%d]]", 4*count)
		if _, dst := g.Runs(&g.Nodes()[0]); fmt.Sprint(dst) != want {
			t.Errorf("%v: runs %v, want %s", r, dst, want)
		}
	}
}

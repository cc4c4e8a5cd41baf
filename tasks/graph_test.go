package tasks_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

var edgeNames = map[dag.EdgeKind]string{tasks.DataEdge: "data", tasks.SlotEdge: "slot", tasks.OrderEdge: "order", tasks.StageEdge: "stage"}

// lines writes a graph as one line per task: label, group, spans, and from
// which tasks which edges come.
func lines(g *tasks.Graph) []string {
	var all []string
	for id := range dag.ID(g.Len()) {
		t := g.Node(id)
		line := fmt.Sprintf("%v %v %v>%v", t, t.Group.Ranks, t.Src, t.Dst)
		for _, e := range g.Edges() {
			if e.To == id {
				line += fmt.Sprintf(" %s:%v", edgeNames[e.Kind], g.Node(e.From))
			}
		}
		all = append(all, line)
	}
	return all
}

func TestExpand(t *testing.T) {
	sum := tasks.Request{Coll: tasks.Allreduce, Count: 10, Type: tasks.Uint8, Op: tasks.Sum}
	for _, tc := range []struct {
		name    string
		r       tasks.Request
		topo    string
		plan    string
		rank    levels.Rank
		inPlace bool
		want    []string
	}{
		{
			name: "a leader, window 2, a short last segment",
			r:    sum, topo: "2x2", plan: "shape=han,fs=4,w=2", rank: 2,
			want: []string{
				"sr#0 [2 3] send[0:4]>recv[0:4]",
				"ir#0 [0 2] recv[0:4]>recv[0:4] data:sr#0",
				"ib#0 [0 2] recv[0:4]>recv[0:4] data:ir#0",
				"sb#0 [2 3] recv[0:4]>recv[0:4] data:ib#0",
				"sr#1 [2 3] send[4:8]>recv[4:8] order:sr#0",
				"ir#1 [0 2] recv[4:8]>recv[4:8] data:sr#1 order:ir#0",
				"ib#1 [0 2] recv[4:8]>recv[4:8] data:ir#1 order:ib#0",
				"sb#1 [2 3] recv[4:8]>recv[4:8] data:ib#1 order:sb#0",
				"sr#2 [2 3] send[8:10]>recv[8:10] slot:sr#0 order:sr#1",
				"ir#2 [0 2] recv[8:10]>recv[8:10] data:sr#2 slot:ir#0 order:ir#1",
				"ib#2 [0 2] recv[8:10]>recv[8:10] data:ir#2 slot:ib#0 order:ib#1",
				"sb#2 [2 3] recv[8:10]>recv[8:10] data:ib#2 slot:sb#0 order:sb#1",
			},
		},
		{
			name: "a member, window 1",
			r:    sum, topo: "2x2", plan: "shape=han,fs=5,w=1", rank: 3,
			want: []string{
				"sr#0 [2 3] send[0:5]>recv[0:5]",
				"sb#0 [2 3] recv[0:5]>recv[0:5] data:sr#0",
				"sr#1 [2 3] send[5:10]>recv[5:10] slot:sr#0 order:sr#0",
				"sb#1 [2 3] recv[5:10]>recv[5:10] data:sr#1 slot:sb#0 order:sb#0",
			},
		},
		{
			name: "in place, alone on its node",
			r:    sum, topo: "a:1,b:2", plan: "shape=han,fs=all,w=1", rank: 0, inPlace: true,
			want: []string{
				"ir#0 [0 1] recv[0:10]>recv[0:10]",
				"ib#0 [0 1] recv[0:10]>recv[0:10] data:ir#0",
			},
		},
		{
			name: "alone on its node it reads its input between nodes",
			r:    sum, topo: "a:1,b:2", plan: "shape=han,fs=all,w=1", rank: 0,
			want: []string{
				"ir#0 [0 1] send[0:10]>recv[0:10]",
				"ib#0 [0 1] recv[0:10]>recv[0:10] data:ir#0",
			},
		},
		{
			name: "a segment is of whole elements",
			r:    tasks.Request{Coll: tasks.Bcast, Count: 3, Type: tasks.Float64, Root: 1}, topo: "2", plan: "shape=han,fs=15,w=1", rank: 0,
			want: []string{
				"sb#0 [0 1] recv[0:8]>recv[0:8]",
				"sb#1 [0 1] recv[8:16]>recv[8:16] slot:sb#0 order:sb#0",
				"sb#2 [0 1] recv[16:24]>recv[16:24] slot:sb#1 order:sb#1",
			},
		},
		{
			name: "a segment is at least one element",
			r:    tasks.Request{Coll: tasks.Bcast, Count: 2, Type: tasks.Complex128}, topo: "2", plan: "shape=flat,fs=1,w=2", rank: 0,
			want: []string{"sb#0 [0 1] recv[0:16]>recv[0:16]", "sb#1 [0 1] recv[16:32]>recv[16:32] order:sb#0"},
		},
		{
			name: "one rank copies",
			r:    sum, topo: "1", plan: "shape=han,fs=all,w=1", rank: 0,
			want: []string{"sr#0 [0] send[0:10]>recv[0:10]"},
		},
		{
			name: "a barrier has one segment of no bytes",
			r:    tasks.Request{Coll: tasks.Barrier}, topo: "2", plan: "shape=han,fs=1,w=4", rank: 1,
			want: []string{"sr#0 [0 1] recv[0:0]>recv[0:0]", "sb#0 [0 1] recv[0:0]>recv[0:0] data:sr#0"},
		},
		{
			name: "reduce keeps partial results in scratch",
			r:    tasks.Request{Coll: tasks.Reduce, Count: 10, Type: tasks.Uint8, Op: tasks.Sum, Root: 3}, topo: "2x2", plan: "shape=han,fs=4,w=1", rank: 0,
			want: []string{
				"sr#0 [0 1] send[0:4]>scratch[0:4]",
				"ir#0 [0 3] scratch[0:4]>scratch[0:4] data:sr#0",
				"sr#1 [0 1] send[4:8]>scratch[64:68] slot:sr#0 order:sr#0",
				"ir#1 [0 3] scratch[64:68]>scratch[64:68] data:sr#1 slot:ir#0 order:ir#0",
				"sr#2 [0 1] send[8:10]>scratch[0:2] slot:sr#1 slot:sr#0 slot:ir#0 order:sr#1",
				"ir#2 [0 3] scratch[0:2]>scratch[0:2] data:sr#2 slot:ir#1 order:ir#1",
			},
		},
		{
			name: "reduce at the root",
			r:    tasks.Request{Coll: tasks.Reduce, Count: 2, Type: tasks.Uint8, Op: tasks.Sum, Root: 3}, topo: "2x2", plan: "shape=han,fs=4,w=1", rank: 3,
			want: []string{
				"sr#0 [2 3] send[0:2]>recv[0:2]",
				"ir#0 [0 3] recv[0:2]>recv[0:2] data:sr#0",
			},
		},
		{
			name: "allgather: the part of the first block stands for all",
			r:    tasks.Request{Coll: tasks.Allgather, Count: 3, Type: tasks.Uint8}, topo: "2x2", plan: "shape=han,fs=2,w=1", rank: 2,
			want: []string{
				"sg#0 [2 3] send[0:2]>recv[0:2]",
				"iag#0 [0 2] recv[0:2]>recv[0:2] data:sg#0",
				"sb#0 [2 3] recv[0:2]>recv[0:2] data:iag#0",
				"sg#1 [2 3] send[2:3]>recv[2:3] slot:sg#0 order:sg#0",
				"iag#1 [0 2] recv[2:3]>recv[2:3] data:sg#1 slot:iag#0 order:iag#0",
				"sb#1 [2 3] recv[2:3]>recv[2:3] data:iag#1 slot:sb#0 order:sb#0",
			},
		},
		{
			name: "gather: a leader that isn't the root keeps its group's blocks in scratch",
			r:    tasks.Request{Coll: tasks.Gather, Count: 3, Type: tasks.Uint8}, topo: "2x2", plan: "shape=han,fs=all,w=1", rank: 2,
			want: []string{
				"sg#0 [2 3] send[0:3]>scratch[0:3]",
				"ig#0 [0 2] scratch[0:3]>scratch[0:3] data:sg#0",
			},
		},
		{
			name: "gather: a member only sends",
			r:    tasks.Request{Coll: tasks.Gather, Count: 3, Type: tasks.Uint8}, topo: "2x2", plan: "shape=han,fs=all,w=1", rank: 3,
			want: []string{"sg#0 [2 3] send[0:3]>send[0:3]"},
		},
		{
			name: "lockstep: a stage waits for the last one before with tasks",
			r:    request(tasks.Allreduce, 2), topo: "2x2", plan: "shape=han-lockstep,fs=4,w=4", rank: 1,
			want: []string{
				"sr#0 [0 1] send[0:4]>recv[0:4]",
				"sr#1 [0 1] send[4:8]>recv[4:8] order:sr#0 stage:sr#0",
				"sb#0 [0 1] recv[0:4]>recv[0:4] data:sr#0 stage:sr#1",
				"sb#1 [0 1] recv[4:8]>recv[4:8] data:sr#1 order:sb#0 stage:sb#0",
			},
		},
		{name: "no elements, no tasks", r: tasks.Request{Coll: tasks.Allreduce, Type: tasks.Int8, Op: tasks.Sum}, topo: "2x2", plan: "shape=han,fs=1,w=1"},
		{name: "nobody to send to", r: request(tasks.Bcast, 3), topo: "1", plan: "shape=han,fs=4,w=1"},
		{name: "nobody to wait for", r: request(tasks.Barrier, 1), topo: "1", plan: "shape=flat,fs=4,w=1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.r.InPlace = tc.inPlace
			got := lines(expand(t, tc.r, tc.topo, tc.plan, tc.rank))
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpandErrors(t *testing.T) {
	first := tasks.UserOp("first", false, func(a, _ uint8) uint8 { return a })
	for _, tc := range []struct {
		name string
		r    tasks.Request
		topo string
		plan string
		want string // part of the text
		is   error
	}{
		{"no shape", request(tasks.Bcast, 1), "2", "fs=1,w=1", "the shapes of bcast are flat, han, han-lockstep, sag, flat-sag", tasks.ErrPlan},
		{"no segment", request(tasks.Bcast, 1), "2", "shape=han,w=1", "lacks a segment size (fs) or a window (w)", tasks.ErrPlan},
		{"no window", request(tasks.Bcast, 1), "2", "shape=han,fs=1", "lacks a segment size (fs) or a window (w)", tasks.ErrPlan},
		{"too many segments", request(tasks.Bcast, 1025), "2", "shape=han,fs=4,w=1", "makes 1025 segments, one graph holds 1024", tasks.ErrPlan},
		{"no such root", tasks.Request{Coll: tasks.Bcast, Type: tasks.Int8, Root: 2}, "2", "shape=han,fs=4,w=1", "root 2: ranks are 0 to 1", nil},
		{
			"rank order over interleaved nodes",
			tasks.Request{Coll: tasks.Allreduce, Count: 1, Type: tasks.Uint8, Op: first},
			"2x2/rr", "shape=han,fs=4,w=1", "shape=flat keeps rank order", tasks.ErrPlan,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := tasktest.Plan(t, tc.plan)
			_, err := tasks.Expand(tc.r, tasktest.Topology(t, tc.topo), p, 0)
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got error %v, want one with %q that wraps %v", err, tc.want, tc.is)
			}
		})
	}
}

// edge is an edge by labels, which are unique in a graph.
type edge struct {
	from, to string
	kind     dag.EdgeKind
}

func compareEdges(a, b edge) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.to, b.to), cmp.Compare(a.from, b.from))
}

// expectedEdges finds the edges from the documented rules alone, pair by pair.
func expectedEdges(g *tasks.Graph) []edge {
	var want []edge
	nodes := slices.SortedFunc(slices.Values(g.Nodes()), func(a, b tasks.Task) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Phase, b.Phase))
	})
	for i, a := range nodes {
		for j, b := range nodes {
			gap := b.Segment - a.Segment
			if gap == 0 && j == i+1 {
				want = append(want, edge{a.String(), b.String(), tasks.DataEdge})
			}
			if a.Kind == b.Kind && gap == 1 {
				want = append(want, edge{a.String(), b.String(), tasks.OrderEdge})
			}
			if a.Kind == b.Kind && int(gap) == g.Plan.Window {
				want = append(want, edge{a.String(), b.String(), tasks.SlotEdge})
			}
			// Partial results in scratch: the segment's first task waits for all of
			// the one whose place it takes.
			slots := g.Plan.Window + len(g.Phases) - 1
			first := !slices.ContainsFunc(nodes, func(n tasks.Task) bool { return n.Segment == b.Segment && n.Phase < b.Phase })
			if !g.Request.Receives(g.Rank) && int(gap) == slots && first && (a.Kind != b.Kind || slots != g.Plan.Window) {
				want = append(want, edge{a.String(), b.String(), tasks.SlotEdge})
			}
		}
	}
	if g.Plan.Shape == tasks.HanLockstep {
		want = append(want, stageEdges(g)...)
	}
	slices.SortFunc(want, compareEdges)
	return want
}

// stageEdges go from each task of a stage to each of the rank's next stage.
func stageEdges(g *tasks.Graph) (want []edge) {
	for _, a := range g.Nodes() {
		next := math.MaxInt
		for _, b := range g.Nodes() {
			if stage(b) > stage(a) {
				next = min(next, stage(b))
			}
		}
		for _, b := range g.Nodes() {
			if stage(b) == next {
				want = append(want, edge{a.String(), b.String(), tasks.StageEdge})
			}
		}
	}
	return want
}

// TestExpandKeepsItsPromises: on any layout the tasks of a kind tile the message,
// stand in canonical order, have the documented edges, and all ranks of a group
// have the task.
func TestExpandKeepsItsPromises(t *testing.T) {
	layouts := []string{"1", "5", "3x1", "4x2", "4x2/rr", "a:3,b:1,c:2", "2x2x2", "2x3x2/rr"}
	rapid.Check(t, func(t *rapid.T) {
		topo := tasktest.Topology(t, rapid.SampledFrom(layouts).Draw(t, "layout"))
		r := tasks.Request{
			Coll: rapid.SampledFrom([]tasks.Collective{tasks.Bcast, tasks.Reduce, tasks.Allreduce}).Draw(t, "coll"),
			Type: rapid.SampledFrom(tasks.Datatypes()).Draw(t, "type"),
			Op:   tasks.Sum, Count: rapid.Int64Range(0, 60).Draw(t, "count"),
			InPlace: rapid.Bool().Draw(t, "in place"),
		}
		if r.Rooted() {
			r.Root = levels.Rank(rapid.IntRange(0, topo.Size()-1).Draw(t, "root"))
		}
		p := tasks.Plan{
			Shape:   rapid.SampledFrom(tiling(r.Coll)).Draw(t, "shape"),
			Segment: rapid.Int64Range(1, 200).Draw(t, "fs"), Window: rapid.IntRange(1, 5).Draw(t, "w"),
		}
		graphs := make([]*tasks.Graph, topo.Size())
		for rank := range graphs {
			var err error
			if graphs[rank], err = tasks.Expand(r, topo, p, levels.Rank(rank)); err != nil {
				t.Fatal(err)
			}
			checkTiles(t, graphs[rank])
			checkEdges(t, graphs[rank])
		}
		checkGroups(t, graphs)
	})
}

// tiling are the shapes all of whose tasks work on whole segments.
func tiling(c tasks.Collective) []tasks.Shape {
	return slices.DeleteFunc(tasks.ShapesOf(c), func(s tasks.Shape) bool { return s == tasks.Lanes })
}

func checkTiles(t *rapid.T, g *tasks.Graph) {
	at := map[tasks.Kind]int64{}
	for i, n := range g.Nodes() {
		tiled := n.Dst
		if n.Dst.Region == tasks.Scratch {
			checkPartial(t, g, n)
			tiled.Off = at[n.Kind]
		}
		if tiled.Off != at[n.Kind] || n.Src.Region != tasks.Scratch && n.Src.Off != tiled.Off || n.Src.Len != n.Dst.Len {
			t.Fatalf("rank %d: %v works on %v>%v, want byte %d on", g.Rank, n, n.Src, n.Dst, at[n.Kind])
		}
		at[n.Kind] += n.Dst.Len
		if i > 0 {
			before := g.Nodes()[i-1]
			order := cmp.Or(cmp.Compare(before.Segment, n.Segment), cmp.Compare(before.Phase, n.Phase))
			if g.Plan.Shape == tasks.HanLockstep {
				order = cmp.Or(cmp.Compare(stage(before), stage(n)), cmp.Compare(n.Phase, before.Phase))
			}
			if order >= 0 {
				t.Fatalf("rank %d: %v stands before %v", g.Rank, before, n)
			}
		}
	}
	for kind, end := range at {
		if end != g.Request.Bytes() {
			t.Fatalf("rank %d: the tasks %v end at byte %d of %d", g.Rank, kind, end, g.Request.Bytes())
		}
	}
}

// checkPartial: a partial result is in scratch of the tasks' own, all tasks of a
// segment have it in one place, and no other segment of which a task could run
// before they have ended.
func checkPartial(t *rapid.T, g *tasks.Graph, n tasks.Task) {
	if g.Request.Receives(g.Rank) || n.Dst.Off < 0 || n.Dst.Off+n.Dst.Len > g.Partial {
		t.Fatalf("rank %d: %v works in %v, %d bytes are for partial results", g.Rank, n, n.Dst, g.Partial)
	}
	frozen, err := g.Freeze(func(e dag.Edge) bool { return e.Kind != tasks.OrderEdge })
	if err != nil {
		t.Fatal(err)
	}
	var pairs [][2]dag.ID
	for a, first := range g.Nodes() {
		for b, then := range g.Nodes() {
			overlap := first.Dst.Off < then.Dst.Off+then.Dst.Len && then.Dst.Off < first.Dst.Off+first.Dst.Len
			switch {
			case first.Segment == then.Segment && first.Dst != then.Dst:
				t.Fatalf("rank %d: %v is in %v, %v in %v", g.Rank, first, first.Dst, then, then.Dst)
			case first.Segment < then.Segment && overlap:
				pairs = append(pairs, [2]dag.ID{dag.ID(a), dag.ID(b)})
			}
		}
	}
	for i, ordered := range frozen.Reaches(pairs) {
		if !ordered {
			t.Fatalf("rank %d: %v may run before %v has ended", g.Rank, g.Node(pairs[i][1]), g.Node(pairs[i][0]))
		}
	}
}

// stage is the pipeline's stage that a task belongs to.
func stage(t tasks.Task) int { return int(t.Segment) + int(t.Phase) }

func checkEdges(t *rapid.T, g *tasks.Graph) {
	var got []edge
	for _, e := range g.Edges() {
		got = append(got, edge{g.Node(e.From).String(), g.Node(e.To).String(), e.Kind})
	}
	slices.SortFunc(got, compareEdges)
	if diff := gocmp.Diff(expectedEdges(g), got, gocmp.AllowUnexported(edge{})); diff != "" {
		t.Fatalf("rank %d: edges (-want +got):\n%s", g.Rank, diff)
	}
}

// checkGroups: whoever is in a task's group has that task with that group.
func checkGroups(t *rapid.T, graphs []*tasks.Graph) {
	for rank, g := range graphs {
		for _, n := range g.Nodes() {
			for _, r := range n.Group.Ranks {
				found := slices.ContainsFunc(graphs[r].Nodes(), func(o tasks.Task) bool {
					return o.String() == n.String() && slices.Equal(o.Group.Ranks, n.Group.Ranks) && o.Group.Leader == n.Group.Leader
				})
				if !found {
					t.Fatalf("%v of rank %d is not a task of rank %d", n, rank, r)
				}
			}
		}
	}
}

func TestPasses(t *testing.T) {
	const gib = 1 << 30
	for _, tc := range []struct {
		name          string
		count         int64
		typ           tasks.Datatype
		fs            int64
		n, each, rest int64
	}{
		{"empty", 0, tasks.Uint8, 4, 0, 0, 0},
		{"exactly one graph", 1024 * 4, tasks.Uint8, 4, 0, 0, 4096},
		{"one element more", 1024*4 + 1, tasks.Uint8, 4, 1, 4096, 1},
		{"a multiple", 3 * 1024 * 4, tasks.Uint8, 4, 3, 4096, 0},
		{"segments of whole elements", 2048, tasks.Float64, 15, 2, 1024, 0},
		{"over 4 GiB", 5*gib/4 + 3, tasks.Float32, 1 << 20, 5, 1024 << 18, 3},
		{"one segment however long", 1 << 60, tasks.Float32, tasks.Whole, 0, 0, 1 << 60},
		{"as long as it gets", math.MaxInt64, tasks.Uint8, 1 << 52, 1, 1 << 62, 1<<62 - 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tasks.Request{Coll: tasks.Bcast, Count: tc.count, Type: tc.typ}
			whole, n, rest, err := tasks.Passes(r, tasks.Plan{Segment: tc.fs, Window: 1})
			if err != nil || n != tc.n || whole.Count != tc.each || rest.Count != tc.rest {
				t.Errorf("got %d passes of %d elements, rest %d, error %v; want %d of %d, rest %d",
					n, whole.Count, rest.Count, err, tc.n, tc.each, tc.rest)
			}
		})
	}
	if _, _, _, err := tasks.Passes(request(tasks.Bcast, 1), tasks.Plan{}); !errors.Is(err, tasks.ErrPlan) {
		t.Errorf("an empty plan: got error %v, want %v", err, tasks.ErrPlan)
	}
}

// TestPassesCoverTheMessage: n × whole + rest is the message, and each is a
// request that Expand takes.
func TestPassesCoverTheMessage(t *testing.T) {
	topo := tasktest.Topology(t, "2")
	rapid.Check(t, func(t *rapid.T) {
		r := tasks.Request{Coll: tasks.Bcast, Type: rapid.SampledFrom(tasks.Datatypes()).Draw(t, "type")}
		r.Count = rapid.Int64Range(0, math.MaxInt64/int64(r.Type.Size())).Draw(t, "count")
		p := tasks.Plan{Shape: tasks.Flat, Segment: rapid.Int64Range(1, tasks.Whole).Draw(t, "fs"), Window: 1}
		whole, n, rest, err := tasks.Passes(r, p)
		if err != nil {
			t.Fatal(err)
		}
		if n*whole.Count+rest.Count != r.Count || n > 0 && rest.Count >= whole.Count {
			t.Fatalf("%d passes of %d and a rest of %d for %d elements", n, whole.Count, rest.Count, r.Count)
		}
		if g, err := tasks.Expand(whole, topo, p, 0); n > 0 && (err != nil || g.Segments != tasks.MaxSegments) {
			t.Fatalf("a whole pass: %v, error %v", g, err)
		}
		if _, err := tasks.Expand(rest, topo, p, 0); err != nil {
			t.Fatal(err)
		}
	})
}

package viz

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

var eight = problem{"a:3,b:1,c:2", segments(tasks.Allreduce, 8), han}

// Every send and every notify finds its other end when all ranks are drawn, and
// nothing finds one when its peer isn't.
func TestStepsConnectRanks(t *testing.T) {
	programs := eight.programs(t)
	want := map[EdgeKind]int{}
	for _, p := range programs {
		for _, s := range p.Steps() {
			switch s.Kind {
			case submodules.SendStep:
				want[Message]++
			case submodules.NotifyStep:
				want[Notice]++
			}
		}
	}
	got := map[EdgeKind]int{}
	d := eight.steps(t, Options{})
	for _, e := range d.Edges {
		got[e.Kind]++
		from, to := d.Nodes[e.From], d.Nodes[e.To]
		if (from.Rank != to.Rank) != (e.Kind != After) {
			t.Errorf("%v edge from %s to %s", e.Kind, from.ID(), to.ID())
		}
		if e.Kind == Message && strings.Replace(from.Label, "send", "recv", 1) != to.Label ||
			e.Kind == Notice && strings.Replace(from.Label, "notify", "await", 1) != to.Label {
			t.Errorf("%v edge from %q to %q", e.Kind, from.Label, to.Label)
		}
	}
	if want[Message] == 0 || got[Message] != want[Message] || got[Notice] != want[Notice] {
		t.Errorf("edges %v, want messages and notices %v", got, want)
	}
	for _, e := range must(Steps(programs[1:2], Options{}))(t).Edges {
		if e.Kind != After {
			t.Errorf("a single rank has an edge %v", e)
		}
	}
}

// Reduce drops edges, but not what they say.
func TestReduceKeepsOrder(t *testing.T) {
	for name, draw := range map[string]func(Options) *Drawing{
		"tasks": func(o Options) *Drawing {
			g := eight.graphs(t)[0]
			g.Connect(0, 2, tasks.DataEdge)  // sr#0 -> ib#0, by way of ir#0
			g.Connect(0, 8, tasks.OrderEdge) // sr#0 -> sr#2, by way of sr#1
			g.Connect(0, 4, tasks.SlotEdge)  // sr#0 -> sr#1 must stay: nobody waits for the order edge
			return must(Tasks([]*tasks.Graph{g}, o))(t)
		},
		"steps": func(o Options) *Drawing { return eight.steps(t, o) },
	} {
		whole, reduced := draw(Options{}), draw(Options{Reduce: true})
		if more := len(reduced.Edges) - len(whole.Edges); more > 0 || name == "tasks" && more != -2 {
			t.Errorf("%s: %d of %d edges are left", name, len(reduced.Edges), len(whole.Edges))
		}
		for _, waits := range []bool{true, false} {
			a, b := frozen(t, whole, waits), frozen(t, reduced, waits)
			var pairs [][2]dag.ID
			for i := range dag.ID(a.Len()) {
				for j := range dag.ID(a.Len()) {
					pairs = append(pairs, [2]dag.ID{i, j})
				}
			}
			was, is := a.Reaches(pairs), b.Reaches(pairs)
			for i, p := range pairs {
				if was[i] != is[i] {
					t.Fatalf("%s: %s before %s: %v, reduced %v", name, whole.Nodes[p[0]].ID(), whole.Nodes[p[1]].ID(), was[i], is[i])
				}
			}
		}
	}
}

// frozen is the drawing as a graph, without order edges if only what is waited
// for counts.
func frozen(t *testing.T, d *Drawing, waits bool) *dag.Frozen {
	t.Helper()
	var g dag.Graph[struct{}]
	for range d.Nodes {
		g.Add(struct{}{})
	}
	for _, e := range d.Edges {
		if !waits || e.Kind != Order {
			g.Connect(dag.ID(e.From), dag.ID(e.To), 0)
		}
	}
	f, err := g.Freeze(nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSegmentsAreFiltered(t *testing.T) {
	for _, d := range []*Drawing{eight.tasks(t, Options{From: 2, To: 5}), eight.steps(t, Options{From: 2, To: 5})} {
		seen := map[int]bool{}
		for _, n := range d.Nodes {
			seen[n.Segment] = true
		}
		if len(seen) != 3 || !seen[2] || !seen[3] || !seen[4] {
			t.Errorf("segments %v, want 2, 3 and 4", seen)
		}
		for _, e := range d.Edges {
			if max(e.From, e.To) >= len(d.Nodes) {
				t.Errorf("edge %v leaves the drawing", e)
			}
		}
	}
	last := eight.tasks(t, Options{From: 7})
	for _, n := range last.Nodes {
		if n.Segment != 7 {
			t.Errorf("%s is not of the last segment", n.ID())
		}
	}
}

func TestDrawingIsDeterministic(t *testing.T) {
	write := func() []byte {
		a, b := eight.tasks(t, Options{Reduce: true}), eight.steps(t, Options{})
		return bytes.Join([][]byte{a.DOT(), a.Text(), a.JSON(), b.DOT(), b.Text(), b.JSON()}, nil)
	}
	first := write()
	for range 3 {
		if !bytes.Equal(first, write()) {
			t.Fatal("two drawings of the same problem differ")
		}
	}
}

func TestBadInput(t *testing.T) {
	graphs, programs := eight.graphs(t), eight.programs(t)
	twice := []*tasks.Graph{graphs[1], graphs[1]}
	for want, draw := range map[string]func() (*Drawing, error){
		"nothing to draw":       func() (*Drawing, error) { return Tasks(nil, Options{}) },
		"no rank's graph":       func() (*Drawing, error) { return Steps(nil, Options{}) },
		"segments 3 to 3":       func() (*Drawing, error) { return Tasks(graphs, Options{From: 3, To: 3}) },
		"segments -1 to 0":      func() (*Drawing, error) { return Steps(programs, Options{From: -1}) },
		"rank 1 is given twice": func() (*Drawing, error) { return Tasks(twice, Options{}) },
		"rank 2 is given twice": func() (*Drawing, error) {
			return Steps([]*submodules.Program{programs[2], programs[2]}, Options{})
		},
	} {
		if d, err := draw(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want an error with %q", d, err, want)
		}
	}
}

func TestEdgeKindsHaveNamesAndLooks(t *testing.T) {
	seen := map[string]bool{}
	for k := EdgeKind(1); k < maxEdge; k++ {
		if k.String() == "" || edgeLooks[k] == "" || seen[k.String()] {
			t.Errorf("kind %d: name %q, look %q", k, k, edgeLooks[k])
		}
		seen[k.String()] = true
	}
	if got := EdgeKind(0).String(); got != "EdgeKind(0)" {
		t.Errorf("the invalid kind is %q", got)
	}
}

func TestUsualLevelsDifferInColour(t *testing.T) {
	seen := map[shade]byte{}
	for _, symbol := range []byte("simw") {
		if other, found := seen[colour(symbol)]; found {
			t.Errorf("%c and %c have one colour", symbol, other)
		}
		seen[colour(symbol)] = symbol
	}
	for symbol := byte('a'); symbol <= 'z'; symbol++ {
		if colour(symbol).fill == "" {
			t.Errorf("%c has no colour", symbol)
		}
	}
}

// Tasks that exchange data are connected: along the chain between nodes, and in
// nodes by memory that is shown. A notify that all was read connects nothing.
func TestConnectTasks(t *testing.T) {
	p := problem{"3x2", segments(tasks.Bcast, 2), han}
	d := p.tasks(t, Options{})
	d.ConnectTasks(p.programs(t))
	got := map[string]bool{}
	for _, e := range d.Edges {
		if e.Kind == Message {
			got[d.Nodes[e.From].ID()+" "+d.Nodes[e.To].ID()] = true
		}
	}
	want := strings.Split("r0.ib#0 r2.ib#0,r2.ib#0 r4.ib#0,r0.sb#0 r1.sb#0,r2.sb#0 r3.sb#0,r4.sb#0 r5.sb#0", ",")
	for _, edge := range want {
		if !got[edge] || !got[strings.ReplaceAll(edge, "#0", "#1")] {
			t.Errorf("no edge %s of both segments in %v", edge, got)
		}
	}
	if len(got) != 2*len(want) {
		t.Errorf("edges %v, want %v of both segments", got, want)
	}
}

// The path takes edges that are drawn, and others where it waited for a processor. Steps
// of one label are told apart.
func TestMarkPath(t *testing.T) {
	d := problem{"2x1", segments(tasks.Bcast, 1), "shape=flat,fs=64KiB,w=1,i=adapt/binomial/32KiB"}.steps(t, Options{})
	if len(d.Nodes) != 4 || d.Nodes[0].Label != d.Nodes[1].Label {
		t.Fatalf("nodes %v", d.Nodes)
	}
	label := d.Nodes[0].Label
	d.MarkPath([]PathPiece{{Rank: 0, Step: 0, Label: label}, {Rank: 0, Step: 0, Label: label}, {Rank: 0, Step: -1}, {Rank: 0, Step: 1, Label: label}, {Rank: 1, Step: 1}})
	text := ""
	for _, e := range d.Edges {
		if e.IsCritical {
			text += d.Nodes[e.From].ID() + " " + d.Nodes[e.To].ID() + " " + e.Kind.String() + ","
		}
	}
	if text != "r0.0 r0.1 path,r0.1 r1.1 message," || d.Nodes[2].IsCritical || !d.Nodes[3].IsCritical {
		t.Errorf("marked edges %s of nodes %v", text, d.Nodes)
	}
}

// Nodes of a picture are in their rank's and their level's box and don't overlap, and
// every edge leads to the right except those that ranks have in common.
func TestLayout(t *testing.T) {
	for name, d := range map[string]*Drawing{
		"tasks":    eight.tasks(t, Options{}),
		"reduced":  eight.tasks(t, Options{Reduce: true, From: 2}),
		"steps":    eight.steps(t, Options{}),
		"scan":     problem{"2x2x2", segments(tasks.Scan, 2), han + ",m=sm"}.steps(t, Options{}),
		"alltoall": problem{"2x2", segments(tasks.Alltoall, 2), "shape=flat,fs=64KiB,w=2,i=adapt/linear"}.steps(t, Options{}),
	} {
		l := newLayout(d)
		if len(l.taken) != len(d.Nodes) {
			t.Errorf("%s: %d places for %d nodes", name, len(l.taken), len(d.Nodes))
		}
		for i := range d.Nodes {
			inside := 0
			c, y := l.column[i], l.middle[l.row[i]]
			for _, b := range l.boxes {
				fits := l.left[c] >= b.left && l.right(c) <= b.right && y-l.height/2 >= b.top && y+l.height/2 <= b.bottom
				if fits && (b.level == d.Nodes[i].Level || strings.HasPrefix(b.label, "rank ")) {
					inside++
				}
			}
			if inside != 2 {
				t.Errorf("%s: %s is in %d boxes, want those of its rank and its level", name, d.Nodes[i].ID(), inside)
			}
		}
		for _, e := range d.Edges {
			if l.column[e.From] >= l.column[e.To] {
				t.Errorf("%s: %s -> %s leads back", name, d.Nodes[e.From].ID(), d.Nodes[e.To].ID())
			}
		}
	}
}

// A drawing that nobody wants any more ends where it is.
func TestDrawingEnds(t *testing.T) {
	over := errors.New("nobody wants it")
	p := problem{"3x2", segments(tasks.Bcast, 2), han}
	for last := range 4 {
		asked := 0
		opt := Options{Check: func() error {
			if asked++; asked > last {
				return over
			}
			return nil
		}}
		if _, err := Steps(p.programs(t), opt); err != over {
			t.Errorf("steps, asked %d times: error %v", asked, err)
		}
		asked = 0
		if _, err := Tasks(p.graphs(t), opt); err != over {
			t.Errorf("tasks, asked %d times: error %v", asked, err)
		}
	}
	isOver := false
	d := p.steps(t, Options{Check: func() error {
		if isOver {
			return over
		}
		return nil
	}})
	whole := [][]byte{d.Text(), d.JSON(), d.DOT()}
	isOver = true
	for i, part := range [][]byte{d.Text(), d.JSON(), d.DOT()} {
		if len(part) >= len(whole[i])/2 {
			t.Errorf("writer %d wrote %d of %d bytes", i, len(part), len(whole[i]))
		}
	}
}

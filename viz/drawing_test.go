package viz

import (
	"bytes"
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

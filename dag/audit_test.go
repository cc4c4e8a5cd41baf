package dag

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// An audit of any graph ends as Freeze does.
func TestAuditAgreesWithFreeze(t *testing.T) {
	cyclic, acyclic := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := random(t, rapid.Bool().Draw(t, "acyclic"))
		_, want := g.Freeze(nil)
		err := g.Audit()
		if want == nil {
			acyclic++
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		cyclic++
		var c *CycleError
		if !errors.As(err, &c) || err.Error() != want.Error() {
			t.Fatalf("audit: %v, Freeze: %v", err, want)
		}
	})
	if cyclic == 0 || acyclic == 0 {
		t.Errorf("drawn were %d graphs with cycles and %d without", cyclic, acyclic)
	}
}

// Each way to freeze a graph wrongly is found. The graph is a diamond: 0 before 1 and 2, these before 3.
func TestAuditFindsDefects(t *testing.T) {
	diamond := func() *Graph[int] {
		g := new(Graph[int])
		for i := range 4 {
			g.Add(i)
		}
		for _, e := range [][2]ID{{0, 1}, {0, 2}, {1, 3}, {2, 3}} {
			g.Connect(e[0], e[1], 0)
		}
		return g
	}
	for _, test := range []struct {
		name  string
		wrong func(f *Frozen)
		want  string
	}{
		{"none", func(*Frozen) {}, ""},
		{"successor", func(f *Frozen) { f.succ.ids[0] = 3 }, "successors of 0 are [1 2], frozen [3 2]"},
		{"predecessor", func(f *Frozen) { f.pred.ids[0] = 2 }, "predecessors of 1 are [0], frozen [2]"},
		{"order", func(f *Frozen) { f.order = []ID{0, 1, 3, 2} }, "the order has 3 before its predecessors [2]"},
		{"short order", func(f *Frozen) { f.order = f.order[:3] }, "the order lacks [3]"},
		{"twice", func(f *Frozen) { f.order = []ID{0, 1, 1, 2} }, "the order lacks [3]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := diamond()
			again, err := g.rebuild()
			if err != nil {
				t.Fatal(err)
			}
			f := mustFreeze(t, g)
			test.wrong(f)
			err = f.compare(again)
			if (err == nil) != (test.want == "") || err != nil && !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A cycle of edges that the graph doesn't have is not taken for one.
func TestAuditConfirmsCycles(t *testing.T) {
	g := new(Graph[int])
	for i := range 3 {
		g.Add(i)
		g.Connect(ID(i), ID(i), 0)
	}
	g.Connect(0, 1, 0)
	g.Connect(1, 0, 0)
	again, err := g.rebuild()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		cycle []ID
		want  string
	}{
		{[]ID{2}, "dag: cycle: 2 -> 2"},
		{[]ID{0, 1}, "dag: cycle: 0 -> 1 -> 0"},
		{[]ID{0, 1, 2}, "dag: audit: dag: cycle: 0 -> 1 -> 2 -> 0, but 1 -> 2: edge not found"},
	} {
		if err := (&CycleError{Cycle: test.cycle}).confirm(again); err.Error() != test.want {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

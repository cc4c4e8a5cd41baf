package submoduletest

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Each trait that is wrong is a complaint.
func TestWrongTraits(t *testing.T) {
	twice := func(a *submodules.Algorithm) { a.Number = submodules.Number{Meaning: "some", Usual: 2} }
	for _, test := range []struct {
		op    tasks.Collective
		wrong func(a *submodules.Algorithm)
		want  string
	}{
		{tasks.Bcast, func(*submodules.Algorithm) {}, ""},
		{tasks.Bcast, traffic(submodules.Doublings, submodules.Others), "its rounds are said to be ⌈log2 n⌉, but are [1 2 3"},
		{tasks.Bcast, traffic(0, submodules.Others), "its rounds are said to have no closed form, but are n-1"},
		{tasks.Bcast, traffic(submodules.Others, submodules.Neighbours), "its partners are said to be min(2, n-1), but are [1 2 3"},
		{tasks.Allreduce, func(a *submodules.Algorithm) { a.Folds = true }, "Folds is true, but some rank of 8 speaks with"},
		{tasks.Reduce, func(a *submodules.Algorithm) { a.InOrder = true }, "InOrder is true, but 0 edges among 9 ranks"},
		{tasks.Bcast, func(a *submodules.Algorithm) { a.Ways = submodules.Doublings }, "its ways are said to be ⌈log2 n⌉, but are [1 1 1"},
		{tasks.Bcast, func(a *submodules.Algorithm) { a.Like, a.Share = "star", 0.5 }, "Share is 0.5, but an edge carries 1 of what one of star does"},
		{tasks.Bcast, func(a *submodules.Algorithm) { a.Like, a.Share = "tree", 1 }, `Like is "tree", which broken doesn't have for bcast`},
		{tasks.Bcast, twice, "its number is usually 2: rank 0: lowered twice, the steps differ"},
	} {
		s := named{broken{algorithms: test.wrong, lower: byNumber}}
		err := underTest{s, s.Algorithms()[0], test.op, maxGroup}.traits()
		if test.want == "" && err != nil {
			t.Errorf("a right trait: %v", err)
		}
		if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%v: got %v, want %q in it", test.op, err, test.want)
		}
	}
}

// traffic gives an algorithm's bcast other traffic.
func traffic(rounds, partners submodules.Growth) func(a *submodules.Algorithm) {
	return func(a *submodules.Algorithm) {
		a.Traffic[tasks.Bcast] = submodules.Traffic{Rounds: rounds, Partners: partners}
	}
}

// byNumber takes room for as many bytes as the plan's number says.
func byNumber(e *submodules.Emitter, c *submodules.Call) (bool, error) {
	if c.N > 0 {
		e.Scratch(int64(c.N))
	}
	return false, nil
}

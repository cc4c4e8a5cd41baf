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
		{tasks.Bcast, scheduled(tasks.Bcast, submodules.DigitTree, 0), "its schedule is said to be tree of digits: 4 ranks then send and hear"},
		{tasks.Allgather, scheduled(tasks.Allgather, submodules.OneByOne, 0), "said to expect messages of 1 partners at once, but expects those of 2"},
		{tasks.Allgather, scheduled(tasks.Allgather, submodules.AllAtOnce, 4), "said to expect messages of 4 partners at once, but expects those of 5"},
		{tasks.Allreduce, scheduled(tasks.Allreduce, submodules.AroundRing, 0), "its schedule is said to be ring: 3 ranks"},
		{tasks.Allreduce, func(a *submodules.Algorithm) { a.Folds = true }, "Folds is true, but some rank of 8 speaks with"},
		{tasks.Reduce, func(a *submodules.Algorithm) { a.InOrder = true }, "InOrder is true, but 0 edges among 9 ranks"},
		{tasks.Bcast, func(a *submodules.Algorithm) { a.Ways = submodules.Doublings }, "its ways are said to be ⌈log2 n⌉, but are [1 1 1"},
		{tasks.Bcast, func(a *submodules.Algorithm) { a.Like, a.Share = "star", 0.5 }, "Share is 0.5, but an edge carries 1 of what one of star does"},
		{tasks.Bcast, func(a *submodules.Algorithm) { a.Like, a.Share = "tree", 1 }, `Like is "tree", which broken doesn't have for bcast`},
		{tasks.Bcast, twice, "its number is usually 2: rank 0: lowered twice, the steps differ"},
	} {
		s := named{broken{algorithms: test.wrong, lower: byNumber}}
		err := underTest{sub: s, algo: s.Algorithms()[0], op: test.op, most: maxGroup}.traits()
		if test.want == "" && err != nil {
			t.Errorf("a right trait: %v", err)
		}
		if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%v: got %v, want %q in it", test.op, err, test.want)
		}
	}
}

// A submodule over links whose row says that ranks read each other's memory is a complaint.
func TestWrongHand(t *testing.T) {
	s := named{broken{algorithms: func(a *submodules.Algorithm) { a.Handed = submodules.Read }, lower: byNumber}}
	if err := (underTest{sub: s, algo: s.Algorithms()[0], op: tasks.Bcast, most: maxGroup}).hand(); err == nil || err.Error() != "the trait Handed is read, but data is by link" {
		t.Errorf("got %v", err)
	}
}

// traffic gives an algorithm's bcast other traffic.
func traffic(rounds, partners submodules.Growth) func(a *submodules.Algorithm) {
	return func(a *submodules.Algorithm) {
		a.Traffic[tasks.Bcast] = submodules.Traffic{Schedule: submodules.StarTree, Rounds: rounds, Partners: partners}
	}
}

// scheduled gives an algorithm another schedule of an operation, with so many partners at once.
func scheduled(op tasks.Collective, s submodules.Schedule, atOnce int) func(a *submodules.Algorithm) {
	return func(a *submodules.Algorithm) {
		one := a.Traffic[op]
		one.Schedule, one.AtOnce = s, atOnce
		a.Traffic[op] = one
	}
}

// byNumber takes room for as many bytes as the plan's number says.
func byNumber(e *submodules.Emitter, c *submodules.Call) (bool, error) {
	if c.N > 0 {
		e.Scratch(int64(c.N))
	}
	return false, nil
}

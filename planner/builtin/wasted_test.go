package builtin

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// On each side of a limit a plan is worth a measurement, or it is said why not.
func TestWasted(t *testing.T) {
	const cut, chain, each = "message too small to cut", "too few pieces to fill a chain: ", "group too large for messages to each: "
	for _, test := range []struct {
		op                  tasks.Collective
		bytes               int64
		plan                string
		ranks, group, count int // pieces in the words
		want                string
	}{
		{tasks.Bcast, CutFrom, "fs=8KiB,i=adapt/binomial", 4, 4, 0, cut},
		{tasks.Bcast, CutFrom + 4, "fs=8KiB,i=adapt/binomial", 4, 4, 0, ""},
		{tasks.Bcast, CutFrom, "fs=16KiB,i=adapt/binomial", 4, 4, 0, ""},
		{tasks.Gather, CutFrom / 4, "fs=2KiB,i=nbc/linear", 4, 4, 0, cut}, // of all blocks
		{tasks.Gather, CutFrom / 2, "fs=4KiB,i=nbc/linear", 4, 4, 0, ""},
		{tasks.Bcast, 1 << 20, "fs=256KiB,i=adapt/chain", 9, shortChain + 1, 4, chain + "4 for 5 ranks"},
		{tasks.Bcast, 1 << 20, "fs=256KiB,i=adapt/chain", 9, shortChain, 4, ""},
		{tasks.Bcast, 1<<20 + 4, "fs=256KiB,i=adapt/chain", 9, 5, 5, ""},
		{tasks.Bcast, 1 << 20, "fs=256KiB,i=adapt/chain/128KiB", 9, 9, 8, chain + "8 for 9 ranks"},
		{tasks.Bcast, 1 << 20, "fs=256KiB,i=adapt/chain/128KiB", 9, 8, 8, ""},
		{tasks.Bcast, 0, "fs=all,i=adapt/chain", 9, 9, 1, chain + "1 for 9 ranks"},
		{tasks.Allgather, 1 << 20, "fs=all,i=nbc/ring", 9, 9, 0, ""}, // no root
		{tasks.Bcast, 1 << 20, "fs=all,i=nbc/linear", 99, LinearRanks + 1, 0, each + "17 ranks"},
		{tasks.Bcast, 1 << 20, "fs=all,i=nbc/linear", 99, LinearRanks, 0, ""},
		{tasks.Gather, 1 << 20, "fs=all,i=nbc/linear", 99, 99, 0, ""}, // each block once
		{tasks.Scatter, 1 << 20, "fs=all,i=nbc/linear", 99, 99, 0, ""},
	} {
		p := tasktest.Plan(t, "shape=flat,w=1,"+test.plan)
		c, _ := p.Choice("i")
		row, known := all.Submodules().Row(c, test.op)
		if !known {
			t.Fatalf("%v does no %v", c, test.op)
		}
		r := tasks.Request{Coll: test.op, Type: tasks.Float32, Count: test.bytes / 4}
		if got := Wasted(r, test.ranks, p, test.op, c, row.Traits, test.group); got != test.want && (test.want != cut || !strings.HasPrefix(got, cut)) {
			t.Errorf("%v of %d bytes, %s, group %d: %q, want %q", test.op, test.bytes, test.plan, test.group, got, test.want)
		}
	}
}

// The rule's trees of messages inside nodes are those of its choices, from as many ranks of a node on.
func TestTreeInside(t *testing.T) {
	adapt := tasks.Choice{Submodule: submodules.Adapt, Algorithm: submodules.Binomial}
	nbc := tasks.Choice{Submodule: submodules.NBC, Algorithm: submodules.Binomial}
	for _, test := range []struct {
		op    tasks.Collective
		c     tasks.Choice
		ranks int // on two nodes
		want  bool
	}{
		{tasks.Bcast, adapt, 2 * fewInside, true},
		{tasks.Bcast, adapt, 2*fewInside - 1, false},
		{tasks.Bcast, nbc, 2 * fewInside, false},
		{tasks.Reduce, adapt, 2 * fewInside, true},
		{tasks.Reduce, adapt, 2*fewInside - 1, false},
		{tasks.Reduce, nbc, 2 * fewInside, false},
		{tasks.Gather, nbc, 2*mostPeers + 1, true},
		{tasks.Gather, nbc, 2 * mostPeers, false},
		{tasks.Gather, adapt, 2*mostPeers + 1, false},
		{tasks.Scatter, nbc, 2*mostPeers + 1, true},
		{tasks.Scatter, nbc, 2 * mostPeers, false},
		{tasks.Scatter, adapt, 2*mostPeers + 1, false},
		{tasks.Allreduce, adapt, 99, false},
		{tasks.Allreduce, nbc, 99, false},
	} {
		if got := TreeInside(test.op, test.c, test.ranks, 2); got != test.want {
			t.Errorf("%v by %v, %d ranks on 2 nodes: %t", test.op, test.c, test.ranks, got)
		}
	}
}

// Sizes and limits that Go has too are those of the rules' text.
func TestSizesAreThoseOfTheRules(t *testing.T) {
	kib := tasks.FormatBytes
	for _, want := range []string{
		"one node, segments of each block", "fs=" + kib(InsideSegment) + ",w=4",
		"segments all: fs={packed(near(total / 128, " + kib(ChainLeast) + ", " + kib(ChainMost) + "))}",
		"let small = total <= " + kib(CutFrom) + "\n",
		"let full = nodes > 1 and ranks >= " + strconv.Itoa(fewInside) + " * nodes\n",
		"let crowded = ranks > " + strconv.Itoa(mostPeers) + " * nodes\n",
		"if shape = flat and ranks <= " + strconv.Itoa(shortChain) + " or shape != flat and nodes <= " + strconv.Itoa(shortChain) + " then by=adapt/chain",
	} {
		if !strings.Contains(Text, want) {
			t.Errorf("the rules have no %q", want)
		}
	}
}

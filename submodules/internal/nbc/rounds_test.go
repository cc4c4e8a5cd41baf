package nbc_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/submodules/internal/nbc"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// programs compiles one task of n ranks led by rank 0, over a message of count
// elements of four bytes.
func programs(t *testing.T, op tasks.Collective, choice string, n int, count int64) []*submodules.Program {
	t.Helper()
	topo := tasktest.Topology(t, strconv.Itoa(n))
	shape := "flat"
	if op == tasks.Allreduce {
		shape = "ar"
	}
	p := tasktest.Plan(t, "shape="+shape+",fs=all,w=1,s="+choice)
	r := tasks.Request{Coll: op, Type: tasks.Int32, Count: count, Op: tasks.Sum}
	if count == 0 {
		r = tasks.Request{Coll: tasks.Barrier}
	}
	progs := make([]*submodules.Program, n)
	for rank := range progs {
		var err error
		if progs[rank], err = submodules.CompileFor(r, topo.Flat(0), p, levels.Rank(rank), submodules.Registry{nbc.NBC{}}); err != nil {
			t.Fatal(err)
		}
	}
	return progs
}

// roundsOf numbers the rounds of a program's steps, and returns how many there are.
func roundsOf(p *submodules.Program) (round []int, n int) {
	round = make([]int, p.Len())
	for _, id := range p.Order() {
		for _, before := range p.Pred(id) {
			after := round[before] + 1
			if p.Step(before).Kind == submodules.JoinStep {
				after--
			}
			round[id] = max(round[id], after)
		}
	}
	for id := range dag.ID(p.Len()) {
		if p.Step(id).Kind != submodules.JoinStep {
			n = max(n, round[id]+1)
		}
	}
	return round, n
}

// TestRounds counts rounds, on the rank that has most, and the bytes all ranks
// send: what the literature says of the algorithms, in units of the message.
func TestRounds(t *testing.T) {
	const count = 48
	for _, tc := range []struct {
		op     tasks.Collective
		choice string
		n      int
		rounds int
		sent   float64 // messages' worth
	}{
		{tasks.Bcast, "nbc/linear", 8, 1, 7},
		{tasks.Bcast, "nbc/binomial", 8, 2, 7}, // to receive, to send
		{tasks.Bcast, "nbc/knomial", 16, 2, 15},
		{tasks.Bcast, "nbc/chain/16", 4, 12 + 1, 3}, // twelve inner segments, held for one round
		{tasks.Reduce, "nbc/linear", 8, 8, 7},
		{tasks.Reduce, "nbc/binomial", 8, 4, 7},      // the leader's three children
		{tasks.Reduce, "nbc/chain/16", 4, 12 + 2, 3}, // receive, reduce, send
		{tasks.Reduce, "nbc/rabenseifner", 8, 3*2 + 3, 7 + 12./8},
		{tasks.Reduce, "nbc/rabenseifner", 6, 2 + 2*2 + 2, 2 + 3 + 1}, // gather: two quarters, then a half
		{tasks.Allreduce, "nbc/recdoubling", 8, 3 * 2, 3 * 8},
		{tasks.Allreduce, "nbc/recdoubling", 6, 2 + 2*2 + 1, 2 + 2*4 + 2},
		{tasks.Allreduce, "nbc/rabenseifner", 8, 3*2 + 3, 2 * 7},
		{tasks.Allreduce, "nbc/rabenseifner", 6, 2 + 2*2 + 2 + 1, 2 + 2*3 + 2},
		{tasks.Allreduce, "nbc/ring", 6, 5*2 + 5, 2 * 5},
		{tasks.Gather, "nbc/linear", 6, 1, 5},
		{tasks.Allgather, "nbc/linear", 6, 1, 6 * 5},
		{tasks.Allgather, "nbc/ring", 6, 5, 6 * 5},
		{tasks.Allgather, "nbc/bruck", 6, 3, 6 * 5},
		{tasks.Allgather, "nbc/recdoubling", 8, 3, 8 * 7},
		{tasks.Alltoall, "nbc/linear", 6, 2, 6 * 5}, // its own block first
		{tasks.Alltoall, "nbc/pairwise", 6, 1 + 5, 6 * 5},
		{tasks.Alltoall, "nbc/bruck", 8, 3*2 + 1, 8 * 3 * 4},      // copied together, sent; in the end to their places
		{tasks.Alltoall, "nbc/bruck//4", 8, 2*2 + 1, 8 * (6 + 4)}, // six of a digit of four, then four
	} {
		t.Run(fmt.Sprintf("%v/%s/n=%d", tc.op, tc.choice, tc.n), func(t *testing.T) {
			most, sent := 0, int64(0)
			for _, p := range programs(t, tc.op, tc.choice, tc.n, count) {
				_, n := roundsOf(p)
				most = max(most, n)
				for _, s := range p.Steps() {
					if s.Kind == submodules.SendStep {
						sent += s.Len()
					}
				}
			}
			if most != tc.rounds || float64(sent) != tc.sent*4*count {
				t.Errorf("%d rounds and %g messages' worth of bytes, want %d and %g", most, float64(sent)/4/count, tc.rounds, tc.sent)
			}
		})
	}
}

// TestRoundBarrier: all steps of a round come after all of the round before.
func TestRoundBarrier(t *testing.T) {
	for _, a := range (nbc.NBC{}).Algorithms() {
		for _, op := range a.Ops {
			choice := "nbc/" + a.Name
			if a.Inner {
				choice += "/16"
			}
			n := 7
			if slices.Contains(a.Needs, submodules.NeedsPowerOfTwo) || slices.Contains(a.Needs, submodules.NeedsEven) {
				n = 8
			}
			count := int64(23)
			if slices.Contains(a.Needs, submodules.NeedsNoData) {
				count = 0
			}
			for _, p := range programs(t, op, choice, n, count) {
				checkBarrier(t, p)
			}
		}
	}
}

func checkBarrier(t *testing.T, p *submodules.Program) {
	t.Helper()
	round, _ := roundsOf(p)
	var pairs [][2]dag.ID
	for a := range dag.ID(p.Len()) {
		for b := range dag.ID(p.Len()) {
			joins := p.Step(a).Kind == submodules.JoinStep || p.Step(b).Kind == submodules.JoinStep
			if !joins && round[b] == round[a]+1 {
				pairs = append(pairs, [2]dag.ID{a, b})
			}
		}
	}
	for i, ok := range p.Reaches(pairs) {
		if !ok {
			t.Fatalf("plan %v, rank %d: %s doesn't wait for %s of the round before\n%v", p.Plan, p.Rank,
				p.Label(p.Step(pairs[i][1])), p.Label(p.Step(pairs[i][0])), p)
		}
	}
}

// TestBarrier: without bytes there are the rounds of the algorithm that was named, and
// dissemination has the fewest: log2(n), rounded up.
func TestBarrier(t *testing.T) {
	sizes := []int{2, 3, 4, 5, 8, 9}
	for _, tc := range []struct {
		algorithm string
		want      []int // rounds, by size
	}{
		{submodules.Dissemination, []int{1, 2, 2, 3, 3, 4}},
		{submodules.RecDoubling, []int{2, 5, 4, 7, 6, 9}},
		{submodules.Rabenseifner, []int{3, 6, 6, 9, 9, 12}},
		{submodules.Ring, []int{3, 6, 9, 12, 21, 24}},
	} {
		var got []int
		for _, n := range sizes {
			progs := programs(t, tasks.Allreduce, "nbc/"+tc.algorithm, n, 0)
			if _, err := check.Programs(progs); err != nil {
				t.Error(err)
			}
			_, rounds := roundsOf(progs[0])
			got = append(got, rounds)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s between %d ranks: %d rounds, want %d", tc.algorithm, sizes, got, tc.want)
		}
	}
}

// TestManyRanks goes beyond the conformance suite: all remainders between two
// powers of two, and counts around the number of ranks.
func TestManyRanks(t *testing.T) {
	for _, choice := range []string{"nbc/recdoubling", "nbc/rabenseifner", "nbc/ring"} {
		for n := 10; n <= 33; n++ {
			for _, count := range []int64{int64(n) - 1, 100} {
				if _, err := check.Programs(programs(t, tasks.Allreduce, choice, n, count)); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

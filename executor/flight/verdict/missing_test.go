package verdict_test

import (
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
)

// chained lets some ranks do something else, each of them nothing, or in a receive from one before. It reports whether
// those in a receive and those they wait for got so far: else they may wait in a circle.
func chained(s *snapshot) (fits bool) {
	var before []int
	for range 1 + s.rnd.IntN(4) {
		rank, at := s.draw()
		if _, is := s.away[rank]; is {
			continue
		}
		s.away[rank] = at
		if len(before) > 0 && s.rnd.IntN(2) == 0 {
			s.receives[rank] = before[s.rnd.IntN(len(before))]
		}
		before = append(before, rank)
	}
	s.settle()
	for rank, from := range s.receives {
		if s.at[rank] != s.away[rank] || s.at[from] != s.away[from] {
			return false
		}
	}
	return true
}

// hasCome reports whether a rank has begun a call.
func (s *snapshot) hasCome(rank, call int) bool {
	place := slices.Index(s.scripts[rank], call)
	return s.at[rank] > place || s.at[rank] == place && s.runs[call][rank].begun
}

// chains yields snapshots of drawn jobs, some ranks of which are elsewhere or in a chain of receives, with their seeds.
func chains(t *testing.T, stream uint64) iter.Seq2[uint64, *snapshot] {
	return func(yield func(uint64, *snapshot) bool) {
		for seed := range uint64(200) {
			rnd := rand.New(rand.NewPCG(seed, stream))
			j := drawJob(t, rnd)
			for range 4 {
				if s := blank(j, rnd); chained(s) && !yield(seed, s) {
					return
				}
			}
		}
	}
}

func ranksOf(states []flight.State) (ranks []int) {
	for _, s := range states {
		ranks = append(ranks, s.Rank)
	}
	return ranks
}

// Of the ranks missing in a call of all, exactly those are named that wait for none of the others: not those in calls
// before it, nor in receives from others.
func TestDrawnMissing(t *testing.T) {
	looked, excused := 0, 0
	for seed, s := range chains(t, 2) {
		for k, c := range s.calls {
			if c.comm != 0 {
				continue // of others some ranks' causes are no members
			}
			var missing, want []int
			for rank := range s.nodes {
				if !s.hasCome(rank, k) {
					missing = append(missing, rank)
				}
			}
			for _, rank := range missing {
				from, receives := s.receives[rank]
				if _, away := s.away[rank]; away && s.current(rank) >= 0 && !(receives && slices.Contains(missing, from)) && !s.runs[s.current(rank)][rank].begun {
					want = append(want, rank)
				}
			}
			if got := ranksOf(verdict.Missing(s.states, 0, c.seq)); !slices.Equal(got, want) {
				t.Fatalf("seed %d, call %d, away %v, receives %v: of %v missing ranks %v are named, want %v", seed, k, s.away, s.receives, missing, got, want)
			}
			looked, excused = looked+min(1, len(missing)), excused+len(missing)-len(want)
		}
	}
	t.Logf("%d calls with missing ranks, of which %d wait for others", looked, excused)
	if looked < 500 || excused < 500 {
		t.Error("these are too few")
	}
}

// A rank that is in an operation is named if a missing one waits for it, and only then.
func TestMissingInOperation(t *testing.T) {
	in := func(rank, from int) flight.State {
		return flight.State{Rank: rank, Doing: flight.Inside, Open: []flight.Open{{What: "receive from a rank, tag 5", Transfer: true, Awaited: true, Peers: []int{from}}}}
	}
	computing := flight.State{Rank: 2, Doing: flight.Computing}
	for _, test := range []struct {
		states []flight.State
		want   []int
	}{
		{[]flight.State{in(1, 2), computing}, []int{2}},
		{[]flight.State{in(1, 3), computing, {Rank: 3, Doing: flight.Outside}}, []int{3}},
		{[]flight.State{in(1, 3), in(3, 1), in(4, 3)}, []int{1, 3, 4}}, // a circle explains nothing
		{[]flight.State{in(1, 9)}, []int{1}},
		{[]flight.State{computing}, nil},
	} {
		if got := ranksOf(verdict.Missing(test.states, 7, 0)); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.states, got, test.want)
		}
	}
}

// Ranks that close name exactly those that explain why not all do: neither ranks that close too, nor those that wait for
// others.
func TestDrawnUnclosed(t *testing.T) {
	excused := 0
	for seed, s := range chains(t, 3) {
		var want []int
		waiting := 0
		for rank := range s.states {
			one := &s.states[rank]
			_, away := s.away[rank]
			_, receives := s.receives[rank]
			switch {
			case away && !receives && one.Doing == flight.Outside:
				want = append(want, rank)
			case one.Doing == flight.Outside:
				one.Doing = flight.Left
			default:
				waiting++
			}
		}
		f := verdict.Unclosed(s.states, verdict.Options{Nodes: s.nodes}, 11*time.Second)
		if f == nil || f.Class != verdict.Late || !slices.Equal(f.Ranks, want) || strings.Count(f.Text, "has not come to Close") != len(want) {
			t.Fatalf("seed %d, away %v, receives %v: %v; want ranks %v", seed, s.away, s.receives, f, want)
		}
		excused += waiting
	}
	if excused < 500 {
		t.Errorf("%d ranks wait for others, these are too few", excused)
	}
}

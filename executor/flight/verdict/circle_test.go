package verdict

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/executor/flight"
)

// waiting is a rank whose program waits in receives, each from one of some peers.
func waiting(rank int, peers ...[]int) flight.State {
	s := flight.State{Rank: rank, Doing: flight.Inside}
	for _, p := range peers {
		s.Open = append(s.Open, flight.Open{What: "receive", Transfer: true, Peers: p, For: 2 * time.Second, Awaited: true})
	}
	return s
}

// called is a rank in a collective for whose message of others it waits, with so many calls behind it on two
// communicators.
func called(rank int, comm uint64, of []uint32, peers ...int) flight.State {
	s := flight.State{Rank: rank, Doing: flight.Inside}
	for n, calls := range of {
		s.Called = append(s.Called, flight.Called{Comm: uint64(n), Calls: calls})
	}
	s.Open = []flight.Open{{Comm: comm, Seq: of[comm] - 1, What: "allreduce", Peers: peers, For: 2 * time.Second, Awaited: true}}
	return s
}

// any is a rank that receives from any other.
func anyOf(rank int, peers ...int) flight.State {
	s := waiting(rank, peers)
	s.Open[0].What, s.Open[0].Any = "receive from any rank, tag 7", true
	return s
}

func TestCircle(t *testing.T) {
	short := waiting(1, []int{2})
	short.Open[0].For = time.Second / 2
	started := waiting(2, []int{1})
	started.Open[0].Awaited = false
	free := func(rank int) flight.State { return flight.State{Rank: rank, Doing: flight.Outside} }
	for name, c := range map[string]struct {
		all  []flight.State
		want []int
	}{
		"nobody":                       {nil, nil},
		"two":                          {[]flight.State{waiting(2, []int{1}), waiting(1, []int{2})}, []int{1, 2}},
		"three and a tail":             {[]flight.State{waiting(0, []int{3}), waiting(3, []int{2}), waiting(2, []int{5}), waiting(5, []int{3})}, []int{2, 5, 3}},
		"one free":                     {[]flight.State{waiting(1, []int{2}), free(2)}, nil},
		"a free one of two":            {[]flight.State{waiting(1, []int{2}, []int{4}), waiting(2, []int{1}), free(4)}, nil},
		"both of two":                  {[]flight.State{waiting(1, []int{2}, []int{4}), waiting(2, []int{1}), waiting(4, []int{1})}, []int{1, 2}},
		"a short wait":                 {[]flight.State{short, waiting(2, []int{1})}, nil},
		"one has no peers":             {[]flight.State{waiting(1, nil), waiting(2, []int{1})}, nil},
		"one is not awaited":           {[]flight.State{waiting(1, []int{2}), started}, nil},
		"one call":                     {[]flight.State{called(0, 0, []uint32{8}, 1, 2), free(1), called(2, 0, []uint32{8}, 0, 1)}, nil},
		"two calls in two orders":      {[]flight.State{called(0, 0, []uint32{8, 3}, 1), called(1, 1, []uint32{7, 4}, 0)}, []int{0, 1}},
		"behind one that has come":     {[]flight.State{called(0, 0, []uint32{8, 3}, 2), called(1, 1, []uint32{7, 4}, 0), called(2, 0, []uint32{8}, 1)}, []int{0, 1}},
		"any, and one of them free":    {[]flight.State{anyOf(0, 1, 2), waiting(1, []int{0}), free(2)}, nil},
		"any, and none of them free":   {[]flight.State{anyOf(0, 1, 2), waiting(1, []int{0}), waiting(2, []int{1})}, []int{0, 1, 2}},
		"any of all, none listed":      {[]flight.State{anyOf(0), anyOf(1), anyOf(2)}, []int{0, 1, 2}},
		"any of all, and one left":     {[]flight.State{anyOf(0), anyOf(1), {Rank: 2, Doing: flight.Left}}, []int{0, 1}},
		"any, and all others on leave": {[]flight.State{anyOf(0), {Rank: 1, Doing: flight.Left}}, nil},
	} {
		var got []int
		for _, s := range Circle(c.all, time.Second) {
			got = append(got, s.Rank)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

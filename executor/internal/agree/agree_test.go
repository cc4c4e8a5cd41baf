package agree

import (
	"fmt"
	"slices"
	"testing"
)

func TestQuorum(t *testing.T) {
	for _, c := range []struct {
		n             int
		ranks, proven Set
		want          bool
	}{
		{5, Of(2, 3, 4), nil, true},
		{5, Of(0, 1), nil, false},
		{5, Of(0, 1), Of(2, 3), false}, // the one that is only suspected may go on with others
		{5, Of(0, 1), Of(2, 3, 4), true},
		{4, Of(0, 3), nil, true},
		{4, Of(1, 2), nil, false},
		{2, Of(1), nil, false},
		{2, Of(1), Of(0), true},
		{130, All(66).Without(Of(0)), nil, false},
		{130, All(65), nil, true},
	} {
		if got := Quorum(c.n, c.ranks, c.proven); got != c.want {
			t.Errorf("n=%d, ranks %v, proven %v: %v; want %v", c.n, c.ranks.Ranks(), c.proven.Ranks(), got, c.want)
		}
	}
}

func TestSets(t *testing.T) {
	a, b := Of(1, 70), Of(70, 200)
	if got, want := a.Union(b).Ranks(), []int{1, 70, 200}; !slices.Equal(got, want) {
		t.Errorf("union: %v; want %v", got, want)
	}
	if got, want := b.Without(a).Ranks(), []int{200}; !slices.Equal(got, want) {
		t.Errorf("without: %v; want %v", got, want)
	}
	if got, want := All(65).Count(), 65; got != want {
		t.Errorf("all: %d; want %d", got, want)
	}
	if !a.Equal(Of(1, 70, 200).Without(Of(200))) || a.Equal(b) || a.Has(200) || !b.Has(200) {
		t.Errorf("sets %v and %v", a.Ranks(), b.Ranks())
	}
	if !slices.Equal(a.Ranks(), []int{1, 70}) {
		t.Errorf("a set was changed: %v", a.Ranks())
	}
}

// Three ranks decide without a fourth one, which has died.
func ExampleMachine() {
	var ranks [3]*Machine
	for r := range ranks {
		m := New(Config{Size: 4, Rank: r, ID: uint64(100 + r)})
		ranks[r] = &m
	}
	var net []Message
	for _, m := range ranks {
		net = append(net, m.Lose(3, true)...)
		net = append(net, m.Begin(10, true)...)
	}
	for len(net) > 0 {
		msg := net[0]
		net = append(net[1:], ranks[msg.To].Hear(msg)...)
	}
	for r, m := range ranks {
		d := m.Decision()
		fmt.Println(r, d.ID, d.Members.Ranks(), d.Lost.Ranks())
	}
	// Output:
	// 0 100 [0 1 2] [3]
	// 1 100 [0 1 2] [3]
	// 2 100 [0 1 2] [3]
}

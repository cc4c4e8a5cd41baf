package tasks

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/levels"
)

// Every rank of another node has one owner, and owners have about as many ranks each; of
// blocks that differ about as many bytes.
func TestOwners(t *testing.T) {
	hot := make([][]int, 8)
	for from := range hot {
		hot[from] = []int{1, 1, 1, 1, 1, 1, 1, 1}
	}
	hot[0][4], hot[1][6], hot[0][7] = 100, 60, 45
	m, err := NewMatrix(hot)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		topo   string
		matrix Matrix
		rank   levels.Rank
		want   string
	}{
		{"4x2", Matrix{}, 0, "[0 1 0 1 0 1 0 1]"},
		{"4x2", Matrix{}, 5, "[4 5 4 5 4 5 4 5]"},
		{"a:1,b:3,c:2", Matrix{}, 2, "[1 1 2 3 1 2]"},
		{"2x2/rr", Matrix{}, 1, "[1 1 3 3]"},
		{"4x2", m, 0, "[0 1 0 0 0 0 1 1]"},
	} {
		r := Request{Coll: Alltoall, Count: 2, Type: Uint8}
		if r.Matrix = tc.matrix; !r.Matrix.IsZero() {
			r.Count = r.Matrix.Max()
		}
		g, err := Expand(r, parsed(t, tc.topo), Plan{Shape: Lanes, Segment: Whole, Window: 1}, tc.rank)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(g.exchange.owners(g.exchange.nodeOf(tc.rank))); got != tc.want {
			t.Errorf("%s, %v: rank %d's node has the owners %s, want %s", tc.topo, tc.matrix, tc.rank, got, tc.want)
		}
	}
}

// Lanes have two levels; what a rank sends between nodes is one piece for each node, where
// its ranks are numbered one after the other.
func TestLanesExchange(t *testing.T) {
	for _, tc := range []struct {
		topo    string
		rank    levels.Rank
		inPlace bool
		want    []string
		bytes   int64
	}{
		{
			"2x2", 0, false,
			[]string{
				"sa#0 [send[0:2] send[4:6]] [send[2:4] send[6:8]] | [recv[0:2] scratch[0:2]] [recv[2:4] scratch[2:4]]",
				"ia#0 [] [] [scratch[0:4]] [] | [] [] [recv[4:8]] []",
			},
			4,
		},
		{
			"2x2/rr", 1, false,
			[]string{
				"sa#0 [send[0:2] send[2:4]] [send[4:6] send[6:8]] | [scratch[0:2] recv[2:4]] [scratch[2:4] recv[6:8]]",
				"ia#0 [scratch[0:2] scratch[2:4]] [] [] [] | [recv[0:2] recv[4:6]] [] [] []",
			},
			4,
		},
		{
			"a:1,b:2", 0, false,
			[]string{"ia#0 [send[0:2]] [send[2:4]] [send[4:6]] | [recv[0:2]] [recv[2:6]] []"},
			0,
		},
		{
			"a:1,b:2", 0, true,
			[]string{
				"sa#0 [recv[0:2] recv[2:4] recv[4:6]] | [recv[0:2] scratch[0:2] scratch[2:4]]",
				"ia#0 [] [scratch[0:2]] [scratch[2:4]] | [] [recv[2:6]] []",
			},
			4,
		},
	} {
		r := Request{Coll: Alltoall, Count: 2, Type: Uint8, InPlace: tc.inPlace}
		g, err := Expand(r, parsed(t, tc.topo), Plan{Shape: Lanes, Segment: Whole, Window: 1}, tc.rank)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range g.Nodes() {
			task := &g.Nodes()[i]
			out, in := g.Exchange(task)
			got = append(got, fmt.Sprintf("%v %s | %s", task, texts(out), texts(in)))
		}
		if !slices.Equal(got, tc.want) || g.slotBytes != tc.bytes {
			t.Errorf("%s: rank %d keeps %d bytes:\n%q\nwant %d:\n%q", tc.topo, tc.rank, g.slotBytes, got, tc.bytes, tc.want)
		}
	}
}

package tune

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// placed lists the first and the last rank of each place, up to the first machine that does not fit.
func placed(t *testing.T, topo string, all ...Machine) (places []string) {
	t.Helper()
	whole := tasktest.Topology(t, topo)
	s := NewSlots(whole)
	for _, m := range all {
		ranks := s.Place(m)
		if ranks == nil {
			break
		}
		places = append(places, fmt.Sprintf("%v %d-%d", m, ranks[0], ranks[len(ranks)-1]))
	}
	return places
}

func TestSlots(t *testing.T) {
	one, two, six := Machine{Nodes: 1, PerNode: 2}, Machine{Nodes: 2, PerNode: 1}, Machine{Nodes: 6, PerNode: 2}
	for _, c := range []struct {
		topo string
		all  []Machine
		want []string
	}{
		{"4x4x1x2", []Machine{one, two, one, two, one}, []string{"1x2 0-1", "2x1 8-10", "1x2 16-17", "2x1 24-26"}},
		{"4x4x1x2", []Machine{two, six, one, one}, []string{"2x1 0-2", "6x2 8-19", "1x2 24-25"}}, // two racks, whose rest is used up
		{"4x4x1x2", []Machine{six, six, one}, []string{"6x2 0-11", "6x2 16-27"}},
		{"16x2", []Machine{one, one}, []string{"1x2 0-1"}}, // nobody knows of racks
		{"8", []Machine{one, one}, []string{"1x2 0-1"}},
	} {
		if diff := cmp.Diff(c.want, placed(t, c.topo, c.all...)); diff != "" {
			t.Errorf("%s: %s", c.topo, diff)
		}
	}
}

// On drawn machines places have no rack in common, and are like the machine's own; the first one
// always fits.
func TestSlotsOnDrawnMachines(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 1))
	several := 0
	for range 300 {
		var paths [][]int32
		racks := 1 + rng.IntN(5)
		for rack := range racks {
			for node := range 1 + rng.IntN(4) {
				for range 1 + rng.IntN(3) {
					paths = append(paths, []int32{int32(10*rack + node), int32(rack)})
				}
			}
		}
		if rng.IntN(3) == 0 {
			rng.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		}
		whole, err := levels.New([]levels.Level{{Name: "node", Symbol: 's'}, {Name: "rack", Symbol: 'k'}, {Name: "network", Symbol: 'i'}}, paths)
		if err != nil {
			t.Fatal(err)
		}
		s, used, n := NewSlots(whole), map[int32]int{}, 0
		for turn := range 8 {
			m := Machine{Nodes: 1 + rng.IntN(whole.Nodes()), PerNode: 1 + rng.IntN(2)}
			like, err := m.On(whole)
			if err != nil {
				continue // a node has fewer ranks
			}
			ranks := s.Place(m)
			if ranks == nil {
				if n == 0 {
					t.Fatalf("%v: %v does not fit where nothing is", whole, m)
				}
				break
			}
			n++
			on, err := whole.Sub(ranks)
			if err != nil || !on.Alike(like) || len(ranks) != m.Nodes*m.PerNode || !slices.IsSorted(ranks) {
				t.Fatalf("%v: %v at %v: %v", whole, m, ranks, err)
			}
			for _, r := range ranks {
				if by, is := used[whole.Rack(r)]; is && by != turn {
					t.Fatalf("%v: two machines in rack %d", whole, whole.Rack(r))
				}
				used[whole.Rack(r)] = turn
			}
		}
		several += min(max(n-1, 0), 1)
	}
	if several < 50 {
		t.Errorf("%d of 300 times more than one machine had a place", several)
	}
}

// A time moved to another one keeps it inside its interval, to the last bit: a table with another one isn't read.
func TestScaledInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	off := 0
	for range 10_000 {
		ns, to := 1e6*rng.Float64(), 1e6*rng.Float64()
		c := scaledTo(table.Candidate{NS: ns, Low: ns, High: ns * (1 + rng.Float64())}, to)
		if c.NS != to || c.Low > c.NS || c.NS > c.High {
			t.Fatalf("%v by %v: %+v", ns, to/ns, c)
		}
		if to/ns*ns > to {
			off++
		}
	}
	if off == 0 {
		t.Error("no product was a rounding off")
	}
}

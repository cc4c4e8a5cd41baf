package learn

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/tasks/tasktest"
)

// One size for four is drawn near one of them, whole floats, and no power of two; the same for equal
// seeds.
func TestWithOdd(t *testing.T) {
	sizes := []int64{1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}
	r := &recorder{sizes: sizes, seed: 5}
	all := r.withOdd()
	if !slices.IsSorted(all) || len(all) != len(sizes)+2 {
		t.Fatalf("%v; want two more than %v, sorted", all, sizes)
	}
	for _, n := range all {
		odd := !slices.Contains(sizes, n)
		if odd && (n&(n-1) == 0 || n%4 != 0 || !slices.ContainsFunc(sizes, func(o int64) bool { return 4*n >= 3*o && 2*n < 3*o })) {
			t.Errorf("%d is drawn", n)
		}
	}
	if diff := cmp.Diff(all, r.withOdd()); diff != "" {
		t.Errorf("drawn otherwise the second time: %s", diff)
	}
}

// Machines of powers of two that have two ranks or more.
func TestParts(t *testing.T) {
	whole := tasktest.Topology(t, "4x2")
	all, err := parts(whole)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, on := range all {
		got = append(got, on.String())
	}
	if diff := cmp.Diff([]string{"1x2", "2x1", "2x2", "4x1", "4x2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRounded(t *testing.T) {
	for ns, want := range map[float64]float64{0: 0, -3: 0, 123456: 123500, 1.23456: 1.235, 99996: 100000, 5: 5} {
		if got := roundDigits(ns); got != want {
			t.Errorf("%v: %v, want %v", ns, got, want)
		}
	}
}

// Near a row is one of the same machine with an odd size from three quarters to one and a half times
// as large that fits; −1 without.
func TestNear(t *testing.T) {
	row := func(nodes int, bytes int64) setRow {
		return setRow{Nodes: nodes, PerNode: 1, Bytes: bytes, NS: []float64{1}}
	}
	s := &recordedSet{Points: []setRow{row(2, 1024), row(2, 768), row(2, 1500), row(2, 1536), row(4, 900), row(2, 2048), row(2, 764)}}
	rng := rand.New(rand.NewPCG(1, 1))
	all := func(int) bool { return true }
	seen := map[int]bool{}
	for range 50 {
		seen[s.near(0, 0, rng, all)] = true
	}
	if diff := cmp.Diff(map[int]bool{1: true, 2: true}, seen); diff != "" {
		t.Error(diff)
	}
	if got := s.near(0, 0, rng, func(row int) bool { return row == 3 }); got != -1 {
		t.Errorf("row %d is near; want none", got)
	}
}

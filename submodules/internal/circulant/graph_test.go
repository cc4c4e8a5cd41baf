package circulant

import (
	"fmt"
	"slices"
	"testing"
)

// TestPhase holds the two conditions on which the schedules stand: in a phase a
// place hears its own block and all but one of the phase before, and sends on what it
// heard earlier in this phase, or its own of the phase before.
func TestPhase(t *testing.T) {
	sizes := []int{511, 512, 513, 1000, 4095, 4096, 4097}
	for n := 2; n <= 300; n++ {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		g := newGraph(n)
		heard := make([][]int, n)
		for v := range n {
			heard[v] = g.inPhase(v)
		}
		for v := range n {
			own, want := g.base(v), []int{}
			for block := -g.phase(); block < 0; block++ {
				if v == 0 || block != own-g.phase() {
					want = append(want, block)
				}
			}
			if v > 0 {
				want = append(want, own)
			}
			if got := slices.Sorted(slices.Values(heard[v])); !slices.Equal(got, want) {
				t.Fatalf("n=%d: in a phase place %d hears %v, want each of %v once", n, v, heard[v], want)
			}
			for round := range g.phase() {
				sends := heard[g.placeAhead(v, round)][round]
				if v > 0 && sends != own-g.phase() && !slices.Contains(heard[v][:round], sends) {
					t.Fatalf("n=%d: place %d is to send block %d in round %d, having heard %v", n, v, sends, round, heard[v][:round])
				}
			}
		}
	}
}

// TestTurns plays whole broadcasts: who sends a block has it, both ends of a message
// know of it, and after ⌈log2 n⌉+blocks-1 rounds everybody has heard each block once.
func TestTurns(t *testing.T) {
	for n := 2; n <= 300; n++ {
		for _, blocks := range []int{1, 2, 3, 5, 8, 17} {
			if n > 40 && blocks == 5 {
				continue
			}
			if err := play(n, blocks); err != nil {
				t.Errorf("n=%d, %d blocks: %v", n, blocks, err)
			}
		}
	}
}

func play(n, blocks int) error {
	g := newGraph(n)
	has, turns := make([][]bool, n), make([][]turn, n)
	for v := range n {
		has[v], turns[v] = slices.Repeat([]bool{v == 0}, blocks), g.turns(v, blocks)
	}
	for i := range turns[0] {
		before := make([][]bool, n)
		for v := range n {
			before[v] = slices.Clone(has[v])
		}
		for v := range n {
			at := turns[v][i]
			if to := turns[at.to][i]; to.in != at.out || to.from != v {
				return fmt.Errorf("round %d: place %d sends block %d to %d, which hears %d from %d", i, v, at.out, at.to, to.in, to.from)
			}
			if at.out != none && !before[v][at.out] {
				return fmt.Errorf("round %d: place %d sends block %d, which it has not", i, v, at.out)
			}
			if at.in == none {
				continue
			}
			if has[v][at.in] {
				return fmt.Errorf("round %d: place %d hears block %d again", i, v, at.in)
			}
			has[v][at.in] = true
		}
	}
	for v := range n {
		if missing := slices.Index(has[v], false); missing >= 0 {
			return fmt.Errorf("place %d never hears block %d", v, missing)
		}
	}
	log := 0
	for 1<<log < n {
		log++
	}
	if want := log + blocks - 1; len(turns[0]) != want {
		return fmt.Errorf("%d rounds, want %d", len(turns[0]), want)
	}
	return nil
}

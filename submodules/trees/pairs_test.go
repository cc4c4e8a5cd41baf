package trees_test

import (
	"testing"

	"github.com/tierflow/tierflow/submodules/trees"
)

// In a tournament each meets each other once, is its partner's partner, and rests in one
// round if their number is odd, in none if it is even.
func TestPartner(t *testing.T) {
	for n := 1; n <= 40; n++ {
		met, rests := map[[2]int]int{}, make([]int, n)
		for round := range trees.Rounds(n) {
			for place := range n {
				other := trees.Partner(place, n, round)
				if other < 0 {
					rests[place]++
					continue
				}
				if other >= n || other == place || trees.Partner(other, n, round) != place {
					t.Fatalf("%d places, round %d: the partner of %d is %d", n, round, place, other)
				}
				met[[2]int{place, other}]++
			}
		}
		for a := range n {
			if rests[a] != n%2 {
				t.Errorf("%d places: %d rests %d times", n, a, rests[a])
			}
			for b := range n {
				if a != b && met[[2]int{a, b}] != 1 {
					t.Errorf("%d places: %d meets %d %d times", n, a, b, met[[2]int{a, b}])
				}
			}
		}
	}
}

// Every block of places meets the others alike: who exchanges its block for another one
// meets those who do the same.
func TestPartnerIsLike(t *testing.T) {
	for _, test := range []struct{ n, block int }{{8, 1}, {8, 4}, {12, 6}, {32, 4}, {48, 12}, {80, 10}, {768, 12}} {
		for far := 1; far < test.n/test.block; far *= 2 {
			moved := func(place int) int { return (place/test.block^far)*test.block + place%test.block }
			for round := range trees.Rounds(test.n) {
				for place := range test.n {
					other, image := trees.Partner(place, test.n, round), trees.Partner(moved(place), test.n, round)
					if image != moved(other) {
						t.Fatalf("%d places in blocks of %d, round %d: %d meets %d, and %d meets %d", test.n, test.block, round, place, other, moved(place), image)
					}
				}
			}
		}
	}
}

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

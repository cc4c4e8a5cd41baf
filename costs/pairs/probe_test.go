package pairs

import (
	"math/rand/v2"
	"testing"
)

// What is nearer answers no later, whatever was measured. A level that nobody measured changes
// nothing, and neither does a measurement whose levels are in order.
func TestSettle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		probes := make([]Probe, 1+rng.IntN(4))
		for k := range probes {
			if rng.IntN(4) > 0 {
				probes[k][Turn] = 1 + rng.Int64N(100)
				probes[k][Many] = rng.Int64N(300)
			}
		}
		before := append([]Probe(nil), probes...)
		Settle(probes)
		outer := -1
		for k := len(probes) - 1; k >= 0; k-- {
			p, b := &probes[k], &before[k]
			if b[Turn] == 0 {
				if *p != *b {
					t.Fatalf("%v became %v: level %d was not measured", before, probes, k)
				}
				continue
			}
			want := b[Turn]
			if outer >= 0 {
				want = min(want, probes[outer][Turn])
			}
			if p[Turn] != want || p[Turn] == b[Turn] && p[Many] != max(b[Many], b[Turn]) || p[Many] < p[Turn] {
				t.Fatalf("%v became %v: level %d", before, probes, k)
			}
			outer = k
		}
	}
}

package executor_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
)

// Where one rank calls something else than the others all that wait for each other hear of it, in whatever order they come; calls
// before, and those on another communicator, do right. TIERFLOW_TEST_EXPLORE=10m plays other jobs for that long.
func TestExploreMismatch(t *testing.T) {
	long, first := exploreTime(t)
	sum, begin := explored{}, time.Now()
	for seed := first; seed-first < 60 || time.Since(begin) < long; seed++ {
		r := rand.New(rand.NewPCG(seed, 2))
		s := drawStage(r, 2+r.IntN(4), 1+r.IntN(3))
		s.separate, s.isolated, s.direct = true, true, false
		s.cancels, s.leaves, s.deaths, s.passes = false, false, 0, false
		if !s.drawOdd(r) {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			seen, f := s.walk(t, r, 10)
			if f != nil {
				t.Fatalf("seed %d: %v", seed, f.shorten(t))
			}
			sum.scripts, sum.events, sum.states = sum.scripts+seen.scripts, sum.events+seen.events, sum.states+1
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d jobs from seed %d on, %d scripts, %d events, %.0f a second", sum.states, first, sum.scripts, sum.events, float64(sum.events)/time.Since(begin).Seconds())
}

// drawOdd draws what one rank calls in place of a collective. It reports false if there is none to replace.
func (s *stage) drawOdd(r *rand.Rand) bool {
	for i, c := range s.calls {
		if c.bytes > 0 || c.beside {
			continue
		}
		for {
			other := casegen.Options{Registry: all.Submodules(), Topology: s.topology}.Draw(r)
			if r.IntN(2) == 0 {
				other.Request = c.Request // with another plan
			}
			if n := countSteps(other); n > 0 && n <= 400 && other.String() != c.Case.String() {
				s.odd = &odd{levels.Rank(r.IntN(s.topology.Size())), i, other}
				return true
			}
		}
	}
	return false
}

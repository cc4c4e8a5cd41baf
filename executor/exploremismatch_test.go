package executor_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check/casegen"
)

// One rank calls something else than the others. All that wait for each other hear of it, in whatever order they come. Calls
// before, and those on another communicator, do right. TIERFLOW_TEST_EXPLORE=10m plays other jobs for that long.
func TestExploreMismatch(t *testing.T) {
	walkStages(t, 2, 60, 10, func(r *rand.Rand) *stage {
		s := drawStage(r, 2+r.IntN(4), 1+r.IntN(3))
		s.separate, s.isolated, s.direct = true, true, false
		s.cancels, s.leaves, s.deaths, s.passes = false, false, 0, false
		if !s.drawOdd(r) {
			return nil
		}
		return s
	})
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

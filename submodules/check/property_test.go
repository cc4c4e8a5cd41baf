package check_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/submodules/check"
	"github.com/tierflow/tierflow/submodules/check/casegen"
	"github.com/tierflow/tierflow/tasks"
)

// maxSteps bounds a case, so that 64 ranks and many segments still take
// milliseconds.
const maxSteps = 20_000

// drawn lets rapid choose, and shrink, the numbers of a case.
type drawn struct{ t *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "n") }

func TestRandomCasesAreRight(t *testing.T) {
	options := casegen.Options{Registry: all.Submodules()}
	rapid.Check(t, func(t *rapid.T) {
		c := options.Draw(drawn{t})
		_, err := check.Request(c.Request, c.Topology, c.Plan, all.Submodules(), maxSteps)
		switch {
		case errors.Is(err, check.ErrTooLarge), errors.Is(err, submodules.ErrUnsupported), errors.Is(err, tasks.ErrPlan):
			t.Skip(err)
		case err != nil:
			t.Fatalf("%v\n%v", c, err)
		}
	})
}

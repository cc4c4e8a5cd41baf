package tune_test

import (
	"testing"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// The heuristics never leave out what the built-in rule chooses. Package priced has the
// same test of what is chosen by price.
func TestHeuristicsKeepTheRule(t *testing.T) {
	s := tune.Space{Registry: all.Submodules()}
	for _, spec := range []string{"1x2", "1x4", "1x16", "2x1", "3x1", "4x1", "5x1", "7x1", "16x1", "33x1", "128x1", "512x1", "4x2", "3x2/rr", "2x16", "9x4", "32x16", "a:3,b:1", "2x2x3"} {
		on := tasktest.Topology(t, spec)
		for _, on := range []*levels.Topology{on, on.OneProcess()} {
			for _, coll := range tasks.Requestable() {
				for _, r := range tasktest.Requests(coll.String(), 8, 600, 1<<10, 6<<10, 8<<10, 20<<10, 100_000, 300<<10, 1<<20, 16<<20) {
					ruled, _ := builtin.Choose(r, on, tasks.Plan{})
					if why := s.Pruned(r, on, ruled); why != "" {
						t.Errorf("%v on %s, goroutines %v: %v: %s", r, spec, on.IsOneProcess(), ruled, why)
					}
				}
			}
		}
	}
}

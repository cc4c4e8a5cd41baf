package tune_test

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// On a known machine prices leave out part of a large space, and never what the rule chooses.
// Without heuristics they leave out nothing.
func TestPricesLeaveOut(t *testing.T) {
	on := tasktest.Topology(t, "16x4")
	for _, coll := range []string{"bcast", "reduce", "allreduce", "allgather", "alltoall"} {
		for _, r := range tasktest.Requests(coll, 64<<10) {
			known := tune.Space{Registry: all.Submodules(), Heuristics: true, Machine: machine.Assumed()}
			unknown, thorough := known, known
			unknown.Machine, thorough.Heuristics = nil, false
			few, many := len(known.Plans(r, on)), len(unknown.Plans(r, on))
			if few == 0 || few >= many {
				t.Errorf("%v: %d plans on a known machine, %d on an unknown one", r, few, many)
			}
			ruled := known.Rule(r, on)
			found := false
			for _, c := range known.Configurations(r, on) {
				found = found || c.Plan.Equal(ruled) && c.Rejected == ""
			}
			if !found {
				t.Errorf("%v: the rule's %v does not compete", r, ruled)
			}
			if text := tune.RejectionText(tune.Rejections(thorough.Configurations(r, on))); strings.Contains(text, "priced out") {
				t.Errorf("%v without heuristics: %s", r, text)
			}
		}
	}
}

package tune

import (
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow/kit/kittest"
)

// On a simulated machine tables from tasks cost a small part of exhaustive search, and
// choose nearly as well. Times are simulated, so they are the same everywhere.
func TestTuneCompareSimulated(t *testing.T) {
	c := kittest.Decode[comparison](t, tierflow.Succeeds(t, "tune", "compare", "--json", "--simulate", "assumed", "--topo", "4x2", "--ops", "bcast",
		"--shapes", "flat,han", "--submodules", "adapt,sm", "--segments", "30KiB,128KiB,all", "--windows", "8", "--inner", "0", "--max", "1MiB"))
	exhaustive := c.Methods[0].TuningS
	for i, most := range map[int]struct{ share, worst float64 }{2: {0.1, 1.1}, 3: {0.1, 1.15}, 4: {0.1, 1.15}, 5: {0.1, 1.15}} {
		if m := c.Methods[i]; !(exhaustive > 0) || m.TuningS > most.share*exhaustive || m.MaxSlowdown > most.worst {
			t.Errorf("%s: %.2f of %.2f s, worst slowdown %.3f; at most %+v", m.Method, m.TuningS, exhaustive, m.MaxSlowdown, most)
		}
	}
	if n := len(c.Methods[3].Spent); n != 1 {
		t.Errorf("predicted: %+v", c.Methods[3].Spent)
	}
	if all := c.Methods[3].Reuse; all.Tasks == 0 || all.Measured < all.Tasks || c.Methods[0].Reuse.Tasks > 0 {
		t.Errorf("tasks of a prediction %+v, of exhaustive search %+v", all, c.Methods[0].Reuse)
	}
}

package trials

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/fixed"
)

// Each library has a line beside tierflow's. A collective without decisions is refused.
func TestDecisions(t *testing.T) {
	args := []string{"decisions", "bcast", "--topo", "16x2", "--bytes", "64KiB"}
	text := lab.Succeeds(t, args...)
	for _, want := range []string{"\ntierflow ", "\nopenmpi ", "\nhan ", "\nmpich ", "shape=sag,", "composition beta"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	all := kittest.Decode[[]decision](t, lab.Succeeds(t, append(args, "--json")...))
	if len(all) != 1+len(fixed.Names()) || all[0].Ratio != 1 {
		t.Fatalf("%+v", all)
	}
	for _, d := range all[1:] {
		if d.NS <= 0 || d.Ratio <= 0 || d.Theirs == "" || !strings.Contains(text, d.Plan) {
			t.Errorf("%+v", d)
		}
	}
	s := lab.Run(t, "decisions", "scan", "--topo", "4x2", "--bytes", "8")
	if want := "no decision is written down for scan; there are those for bcast, reduce"; s.Status != 2 || s.Out != "" || !strings.Contains(s.Errors, want) {
		t.Errorf("%+v, want %q", s, want)
	}
}

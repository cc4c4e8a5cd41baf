package trials

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/costs"
)

func TestBenchOverlap(t *testing.T) {
	s := lab.Run(t, strings.Fields("overlap --topo 2x2 --json"+short)...)
	all := kittest.Decode[struct {
		Results []overlapResult
	}](t, s.Out).Results
	if len(all) != 2 {
		t.Fatalf("%d results, want ib with sb and ib with ir; errors %q", len(all), s.Errors)
	}
	for _, key := range []string{"kinds", "collective", "plan", "leader_ranks", "alone", "together", "stage", "first_ns", "in_turn"} {
		if !strings.Contains(s.Out, `"`+key+`":`) {
			t.Errorf("no %s in\n%s", key, s.Out)
		}
	}
	for i, want := range []string{"bcast ib sb sbib", "allreduce ib ir ibir"} {
		r := all[i]
		if got := strings.Join([]string{r.Collective, r.Kinds[0], r.Kinds[1], r.Stage}, " "); got != want {
			t.Errorf("result %d is of %s, want %s", i, got, want)
		}
		if often := r.Stage == "sbib"; often != (len(r.First) == 2) {
			t.Errorf("%s: first times %v", want, r.First)
		}
		for _, c := range []costs.Cost{r.Alone[0], r.Alone[1], r.Together, r.InTurn} {
			if c.N < 5 || len(c.Leaders) != 2 {
				t.Errorf("%s: %+v", want, c)
			}
		}
	}
	out := lab.Succeeds(t, strings.Fields("overlap sr+ir --topo 2x2"+short)...)
	if !strings.Contains(out, "# sr with ir, of allreduce") || !strings.Contains(out, "irsr in turn") || !strings.Contains(out, "slowest") {
		t.Errorf("output\n%s", out)
	}
}

// On a simulated machine two tasks at once take no less than the longer one alone, and
// no longer than one after the other.
func TestOverlapSimulated(t *testing.T) {
	figure := filepath.Join(t.TempDir(), "overlap.svg")
	s := lab.Run(t, "overlap", "--topo", "6x4", "--simulate", "assumed", "--json", "--svg", figure,
		"--plan", "i=adapt/chain", "--plan", "i=adapt/binary")
	all := kittest.Decode[struct {
		Results []overlapResult
	}](t, s.Out).Results
	if len(all) != 4 {
		t.Fatalf("%d results, want two pairs with two plans", len(all))
	}
	for _, r := range all {
		if a, b, both := r.Alone[0].P50, r.Alone[1].P50, r.Together.P50; both < max(a, b) || both > 1.05*(a+b) {
			t.Errorf("%v with %s: %.0f and %.0f ns alone, %.0f together", r.Kinds, r.Plan, a, b, both)
		}
	}
	kittest.CheckDrawing(t, figure, "ib alone", "ib and sb at once", "settled sbib in turn", "i=adapt/binary", ">r20<", "µs")
}

package bench

import (
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow/kit/kittest"
)

// The leaders alone take what is left when the time inside nodes is taken off, where tasks
// follow each other.
func TestShareSimulated(t *testing.T) {
	type output struct {
		Topology, Links string
		Rows            []shareRow
	}
	all := kittest.Decode[output](t, tierflow.Succeeds(t, "bench", "share", "bcast,allreduce,barrier", "--topo", "4x4", "--simulate", "assumed", "--bytes", "4,1MiB", "--json"))
	if len(all.Rows) < 5 {
		t.Fatalf("%+v", all.Rows)
	}
	for _, r := range all.Rows {
		if !(r.Leaders > 0) || r.Leaders > r.Total {
			t.Errorf("%+v", r)
		}
		if left := r.Total - r.Inside; r.Inside > 0 && (left < 0.9*r.Leaders || left > 1.1*r.Leaders) {
			t.Errorf("without %.0f ns inside nodes %.0f are left, leaders take %.0f: %s of %d with %s", r.Inside, left, r.Leaders, r.Collective, r.Bytes, r.Plan)
		}
	}
}

func TestShareOnRanks(t *testing.T) {
	text := tierflow.Succeeds(t, "bench", "share", "bcast", "--topo", "2x2", "--bytes", "1KiB", "--time", "1ms")
	if !strings.Contains(text, "leaders") || strings.Count(text, "\n") != 4 {
		t.Error(text)
	}
	if s := tierflow.Run(t, "bench", "share", "bcast", "--plan", "shape=flat"); s.Status != 2 || !strings.Contains(s.Errors, "no part inside nodes") {
		t.Errorf("%+v", s)
	}
}

package trials

import (
	"math"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	meter "github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/tasks"
)

// The leaders alone take what is left when the time inside nodes is taken off, where tasks
// follow each other.
func TestShareSimulated(t *testing.T) {
	type output struct {
		Topology, Links string
		Rows            []shareRow
	}
	all := kittest.Decode[output](t, lab.Succeeds(t, "share", "bcast,allreduce,barrier", "--topo", "4x4", "--simulate", "assumed", "--bytes", "4,1MiB", "--json"))
	if len(all.Rows) < 5 {
		t.Fatalf("%+v", all.Rows)
	}
	for _, r := range all.Rows {
		if !(r.Leaders > 0) || r.Leaders > r.Total {
			t.Errorf("%+v", r)
		}
		if !(r.ModelInside > 0) || r.ModelInside > r.ModelTotal || r.ToFirst != 0 {
			t.Errorf("model %+v", r)
		}
		if left := r.Total - r.Inside; r.Inside > 0 && (left < 0.9*r.Leaders || left > 1.1*r.Leaders) {
			t.Errorf("without %.0f ns inside nodes %.0f are left, leaders take %.0f: %s of %d with %s", r.Inside, left, r.Leaders, r.Collective, r.Bytes, r.Plan)
		}
	}
}

func TestShareOnRanks(t *testing.T) {
	text := lab.Succeeds(t, "share", "bcast", "--topo", "2x2", "--bytes", "1KiB", "--time", "1ms")
	if !strings.Contains(text, "leaders") || strings.Count(text, "\n") != 4 {
		t.Error(text)
	}
	if s := lab.Run(t, "share", "bcast", "--plan", "shape=flat"); s.Status != 2 || !strings.Contains(s.Errors, "no part inside nodes") {
		t.Errorf("%+v", s)
	}
}

// By the model messages go along trees; what all ranks get takes twice as long; segments
// follow each other.
func TestShareModel(t *testing.T) {
	s := shareModel{between: meter.Passage{Alone: 300, Stream: 100}, within: meter.Passage{Alone: 20, Stream: 10}, nodes: 16, ranks: 4}
	for _, test := range []struct {
		coll          tasks.Collective
		isCut         bool
		total, inside float64
	}{
		{tasks.Bcast, false, 4*300*4.0/3 + 2*20, 2 * 20},
		{tasks.Reduce, true, 110, 10},
		{tasks.Allreduce, false, 2 * (4*300*4.0/3 + 2*20), 2 * 2 * 20},
		{tasks.Allreduce, true, 220, 20},
		{tasks.Scan, true, 120, 20},
		{tasks.Alltoall, false, 0, 0},
	} {
		total, inside := s.times(test.coll, test.isCut)
		if math.Abs(total-test.total) > 1e-9 || math.Abs(inside-test.inside) > 1e-9 {
			t.Errorf("%+v: %v, %v", test, total, inside)
		}
	}
	s.nodes = 1
	if total, inside := s.times(tasks.Bcast, false); total != inside {
		t.Errorf("one node: %v of %v inside", inside, total)
	}
}

// Plans are compared with the first one.
func TestShareOfPlans(t *testing.T) {
	args := []string{"share", "bcast", "--topo", "4x8", "--simulate", "assumed", "--bytes", "64KiB", "--json", "--plan", "s=adapt/binomial,fs=all", "--plan", "s=solo,fs=all"}
	rows := kittest.Decode[struct {
		Topology, Links string
		Rows            []shareRow
	}](t, lab.Succeeds(t, args...)).Rows
	if len(rows) != 2 || rows[0].ToFirst != 1 || rows[1].ToFirst != rows[1].Total/rows[0].Total || rows[1].Inside > rows[0].Inside {
		t.Errorf("%+v", rows)
	}
	for args, want := range map[string]string{
		"share bcast --simulate assumed --time 1s":  "--time: a simulation",
		"share bcast --plan s=nothing":              "nothing",
		"share nothing":                             "nothing",
		"share bcast --topo 1x4":                    "1x4 is one node",
		"share bcast --topo 1x4 --simulate assumed": "1x4 is one node",
	} {
		if s := lab.Run(t, strings.Fields(args)...); s.Status != 2 || !strings.Contains(s.Errors, want) {
			t.Errorf("%s: %+v", args, s)
		}
	}
}

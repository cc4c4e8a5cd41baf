package tune_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/measure"
	"github.com/tierflow/tierflow/costs/stats"
	"github.com/tierflow/tierflow/planner/table/tabletest"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// Without races only the plans of entries run, beside the rule's, and all else is predicted from tasks: the table
// is total and good. With races where predictions overlap few whole collectives run.
func TestPredictedTable(t *testing.T) {
	alone(t)
	for _, m := range []*tune.Method{tune.Tasks, tune.TasksPruned} {
		for _, when := range []tune.RaceWhen{tune.RacesNever, tune.RacesAuto} {
			s, f := newSearch(t, "4x2", m, "bcast,allreduce,barrier")
			s.Races = when
			tuned, err := s.Run(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			if f.units == 0 || when == tune.RacesNever && f.collectives > 6*len(s.Requests) || f.collectives > 12*len(s.Requests) {
				t.Errorf("%v, races %v: %d tasks, %d whole collectives", m, when, f.units, f.collectives)
			}
			if len(tuned.Entries) != len(s.Requests) {
				t.Errorf("%v, races %v: %d entries for %d requests", m, when, len(tuned.Entries), len(s.Requests))
			}
			for i := range tuned.Entries {
				checkChoice(t, m, s, f, &tuned.Entries[i])
			}
			tabletest.RoundTrip(t, tuned)
		}
	}
}

// Two sizes of a task are measured one after the other, so that a search that ends early
// has both.
func TestSizesStayTogether(t *testing.T) {
	s, _ := newSearch(t, "4x2", tune.Tasks, "bcast,allreduce")
	s.Races = tune.RacesNever
	groups := s.Groups()
	seen := map[string]int{} // how often
	for i, g := range groups {
		if i > 0 && groups[i-1] != g && seen[g] > 0 {
			t.Errorf("%s is the group of measurement %d and of an earlier one, but not of the one between", g, i)
		}
		seen[g]++
	}
	if len(seen) == len(groups) || len(seen) < len(groups)/2 {
		t.Errorf("%d measurements in %d groups", len(groups), len(seen))
	}
}

// More sizes of the same collectives need few more tasks.
func TestTasksServeAllSizes(t *testing.T) {
	alone(t)
	count := func(sizes ...int64) int {
		s, f := newSearch(t, "4x2", tune.Tasks, "bcast,allreduce")
		s.Races, s.Requests = tune.RacesNever, tasktest.Requests("bcast,allreduce", sizes...)
		if _, err := s.Run(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		return f.units
	}
	few := count(64, 64<<10, 1<<20, 4<<20)
	many := count(64, 256, 1<<10, 4<<10, 16<<10, 32<<10, 64<<10, 128<<10, 256<<10, 512<<10, 1<<20, 2<<20, 4<<20)
	if float64(many) > 1.6*float64(few) {
		t.Errorf("4 sizes need %d tasks, 13 need %d", few, many)
	}
}

// On a simulated machine, whose ranks share processors or don't, what is predicted without
// any race is nearly as good as the best of all plans.
func TestPredictedOnSimulatedMachine(t *testing.T) {
	alone(t)
	shared := machine.Assumed()
	shared.Cores = machine.Cores{InAll: 2, Switch: 14e3}
	for name, m := range map[string]*machine.Machine{"cores of their own": machine.Assumed(), "shared cores": shared} {
		s, _ := newSearch(t, "4x2", tune.Tasks, "bcast,allreduce")
		s.Races, s.Requests = tune.RacesNever, tasktest.Requests("bcast,allreduce", 64, 16<<10, 256<<10, 4<<20)
		s.Space.Shapes = []tasks.Shape{tasks.Flat, tasks.Han, tasks.RSAG, tasks.SAG}
		meter := measure.NewSimulated(s.Topology, m, all.Submodules())
		tuned, err := s.Run(t.Context(), meter)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range s.Requests {
			best, chosen := math.Inf(1), 0.0
			choice := tuned.Entries[i].Candidates[0]
			for _, p := range append(s.Space.Plans(r, s.Topology), choice.Parsed) {
				took, err := meter.Collective(t.Context(), r, p, stats.Stop{})
				if err != nil {
					t.Fatal(err)
				}
				best = min(best, took.Slowest.P50)
				if p.Equal(choice.Parsed) {
					chosen = took.Slowest.P50
				}
			}
			if chosen > 1.15*best {
				t.Errorf("%s: %v: %s takes %.0f ns, the best plan %.0f", name, r, choice.Plan, chosen, best)
			}
		}
	}
}

// A machine that is simulated on several processors gives the table that one gives.
func TestSimulatedBeside(t *testing.T) {
	var tables [2]string
	for i := range tables {
		s, _ := newSearch(t, "4x2", tune.TasksPruned, "bcast,alltoall")
		s.Requests = tasktest.Requests("bcast,alltoall", 64, 64<<10, 1<<20)
		var meter tune.Meter = measure.NewSimulated(s.Topology, machine.Assumed(), all.Submodules())
		if i > 0 {
			meter = struct{ tune.Meter }{meter} // measures one after the other
		}
		tuned, err := s.Run(t.Context(), meter)
		if err != nil {
			t.Fatal(err)
		}
		data, err := tuned.Encode()
		if err != nil {
			t.Fatal(err)
		}
		tables[i] = string(data)
	}
	if diff := cmp.Diff(tables[1], tables[0]); diff != "" {
		t.Error(diff)
	}
}

// A search with races now and then goes on where it was interrupted.
func TestRaceWhen(t *testing.T) {
	for _, w := range []tune.RaceWhen{tune.RacesAuto, tune.RacesNever} {
		if got, err := tune.ParseRaceWhen(w.String()); got != w || err != nil {
			t.Errorf("%v is read as %v, %v", w, got, err)
		}
	}
	if _, err := tune.ParseRaceWhen("seldom"); err == nil || err.Error() != `unknown word "seldom" for races; known are [auto never]` {
		t.Error(err)
	}
	if s := tune.RaceWhen(9).String(); s != "RaceWhen(9)" {
		t.Error(s)
	}
}

// Races go over the requests so that each beginning is spread over all.
func TestSpread(t *testing.T) {
	if diff := cmp.Diff([]int{4, 2, 6, 1, 3, 5, 7, 0}, tune.Spread(8)); diff != "" {
		t.Error(diff)
	}
	for n := range 40 {
		all := tune.Spread(n)
		slices.Sort(all)
		for i := range n {
			if len(all) != n || all[i] != i {
				t.Fatalf("%d: %v", n, all)
			}
		}
	}
}

// What a race showed of a kind of plans holds for the nearest sizes.
func TestAround(t *testing.T) {
	fixes := [][2]float64{{1 << 10, 2}, {64 << 10, 1.21}, {64 << 10, 1}}
	for _, test := range []struct {
		bytes      int64
		ratio, far float64
	}{{1 << 10, 2, 1}, {512, 2, 2}, {32 << 10, 1.1, 2}, {4 << 20, 1.1, 64}} {
		ratio, far := tune.Around(fixes, test.bytes)
		if fmt.Sprintf("%.6g %.6g", ratio, far) != fmt.Sprintf("%.6g %.6g", test.ratio, test.far) {
			t.Errorf("%d bytes: %v, %v away; want %v, %v", test.bytes, ratio, far, test.ratio, test.far)
		}
	}
	if ratio, _ := tune.Around(nil, 8); ratio != 0 {
		t.Errorf("nothing ran: %v", ratio)
	}
}

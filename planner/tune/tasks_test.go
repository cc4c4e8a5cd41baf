package tune_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// manySizes are those that tierflow tune takes.
var manySizes = []int64{4, 16, 64, 256, 1536, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1536 << 10, 4 << 20, 16 << 20}

// protocols is a model whose times jump: some sizes take longer, which no line
// foretells, and one algorithm is a choice from a certain size on only.
func protocols(c tasks.Choice, segment int64) float64 {
	factor := 1.0
	if segment > 256 && segment <= 4<<10 {
		factor = 3
	}
	if c.Algorithm == "binary" && segment > 1<<10 {
		factor /= 4
	}
	return factor
}

// newTuneSearch is one over a space that compiles fast.
func newTuneSearch(t *testing.T, m *tune.Method) (*tune.Search, *fakeMeter) {
	s, f := newSearch(t, "4x2", m, "bcast")
	s.Requests = tasktest.Requests("bcast,allreduce", manySizes...)
	s.Space.Shapes = []tasks.Shape{tasks.Flat, tasks.Han, tasks.RSAG}
	return s, f
}

// The tasks methods find plans near the best of the space with few measurements,
// whether times follow the model, are noisy, or jump.
func TestTasksMethods(t *testing.T) {
	alone(t)
	all, _ := newTuneSearch(t, tune.Exhaustive)
	whole, _, err := all.Planned(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		bend  func(c tasks.Choice, segment int64) float64
		noise bool
		far   float64 // slowdown that is allowed with any size
		mean  float64
		part  int // of what exhaustive search measures that may be measured
	}{
		{"smooth", nil, false, 1.03, 1.01, 5},
		{"noisy", nil, true, 1.15, 1.02, 5},
		{"jumping", protocols, false, 1.5, 1.02, 5},
		{"jumping and noisy", protocols, true, 1.5, 1.02, 5},
	} {
		for _, m := range []*tune.Method{tune.Tasks, tune.TasksPruned} {
			s, f := newTuneSearch(t, m)
			f.bend = test.bend
			if test.noise {
				f.noise = rand.New(rand.NewPCG(7, 7))
			}
			tuned, err := s.Run(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, r := range s.Requests {
				chosen := tasktest.Plan(t, entry(t, tuned, r).Candidates[0].Plan)
				slow := f.time(r, chosen) / least(f, s, r)
				if sum += slow; slow > test.far {
					t.Errorf("%s, %v: %v for %v takes %.2f times the best", test.name, m, chosen, r, slow)
				}
			}
			if mean := sum / float64(len(s.Requests)); mean > test.mean {
				t.Errorf("%s, %v: mean slowdown %.3f", test.name, m, mean)
			}
			made := f.collectives + f.units
			t.Logf("%s, %v: %d measurements; mean slowdown %.3f", test.name, m, made, sum/float64(len(s.Requests)))
			if most := map[*tune.Method]int{tune.Tasks: whole / test.part, tune.TasksPruned: whole * 3 / (5 * test.part)}[m]; made > most {
				t.Errorf("%s, %v: %d measurements, exhaustive search makes %d", test.name, m, made, whole)
			}
		}
	}
}

// least is the time of the best plan of the method's space.
func least(f *fakeMeter, s *tune.Search, r tasks.Request) float64 {
	best := math.Inf(1)
	for _, p := range s.Space.Plans(r, s.Topology) {
		best = min(best, f.time(r, p))
	}
	return best
}

func entry(t *testing.T, tuned *table.Table, r tasks.Request) table.Entry {
	t.Helper()
	for _, e := range tuned.Entries {
		if e.Collective == r.Coll.String() && e.Bytes == r.Bytes() {
			return e
		}
	}
	t.Fatalf("no entry for %v", r)
	return table.Entry{}
}

// The built-in rule's plan competes whatever the space is, once.
func TestRuleCompetes(t *testing.T) {
	alone(t)
	for _, topo := range []string{"1x4", "2x2", "3x2"} {
		on := tasktest.Topology(t, topo)
		for _, coll := range tasks.Requestable() {
			for _, r := range tasktest.Requests(coll.String(), 64, 64<<10, 4<<20) {
				for _, s := range []tune.Space{
					{Segments: []int64{tasks.Whole}, Shapes: []tasks.Shape{tasks.Flat}, Submodules: []string{"nbc"}, Heuristics: true},
					{Windows: []int{4, 8}, Inners: []int64{0}, Heuristics: true},
				} {
					s.Registry = all.Submodules()
					rule, n := s.Rule(r, on), 0
					for _, c := range s.Configurations(r, on) {
						if c.Plan.Equal(rule) && c.Rejected == "" {
							n++
						}
					}
					if n != 1 {
						t.Errorf("%v on %s: the rule's plan %v is there %d times", r, topo, rule, n)
					}
				}
			}
		}
	}
}

package fixed_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/fixed"
	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// specs, sizes and mostSteps are what is simulated.
var (
	specs = []string{"2x1", "3x1", "7x1", "16x1", "33x1", "2x16", "6x4", "16x8"}
	sizes = []int64{64, 1 << 10, 6 << 10, 40 << 10, 200 << 10, 700 << 10, 4 << 20} // of the message, of all blocks where there are blocks
)

const (
	mostSteps = 100_000 // plans with more are left out
	mostRanks = 64      // topologies with more are left out for an alltoall
)

// bounds are how many times as long ours take as a library's at worst, the rule's and the
// one by price. They are what was found, and a little more. The aim is 1.
var bounds = map[tasks.Collective][2]float64{
	tasks.Bcast:         {1.4, 1.2},
	tasks.Reduce:        {1.35, 1.15},
	tasks.Allreduce:     {1.5, 1.3},
	tasks.Allgather:     {1.8, 1.3},
	tasks.Gather:        {1.2, 1.15},
	tasks.Scatter:       {1.4, 1.2},
	tasks.ReduceScatter: {1.7, 1.3},
	tasks.Alltoall:      {2.05, 1.3},
}

// The built-in choices beside what Open MPI, HAN and MPICH decide, in simulated time: the
// rule's, which knows no machine, and the one by price on the machine. With -v it prints
// how they compare, and each cell where they are slower.
func TestNeverSlower(t *testing.T) {
	for _, coll := range fixed.Covered() {
		tallies := map[string]*tally{}
		for _, spec := range specs {
			on := tasktest.Topology(t, spec)
			if coll == tasks.Alltoall && on.Size() > mostRanks {
				continue
			}
			for _, bytes := range sizes {
				r := tasktest.Request(coll, bytes)
				if r.Blocks() {
					if r = tasktest.Request(coll, bytes/int64(on.Size())); r.Count == 0 {
						continue
					}
				}
				compare(t, r, on, spec, tallies)
			}
		}
		for _, lib := range fixed.Libraries() {
			for i, ours := range []string{"rule", "priced"} {
				y := tallies[ours+" to "+lib.Name]
				if y == nil {
					t.Fatalf("%v: nothing was simulated beside %s", coll, lib.Name)
				}
				t.Logf("%v, %s to %s: %.2f on average, %.2f at worst, slower in %d of %.0f, %d left out%s", coll, ours, lib.Name, math.Exp(y.sum/y.cells), y.worst, y.slower, y.cells, y.large, &y.where)
				if most := bounds[coll][i]; y.worst > most {
					t.Errorf("%v: %s takes up to %.2f times as long as %s, want at most %v", coll, ours, y.worst, lib.Name, most)
				}
			}
		}
	}
}

// tally is how one of ours compares with a library.
type tally struct {
	sum, cells float64 // of logarithms of ratios
	worst      float64
	slower     int
	large      int // left out: one of both has too many steps
	where      strings.Builder
}

// slower is a ratio from which on a plan counts as slower: simulations are exact, and many
// of the plans are the same but for their order of messages.
const slower = 1.005

func (y *tally) add(ratio float64, where func() string) {
	y.sum, y.cells, y.worst = y.sum+math.Log(ratio), y.cells+1, max(y.worst, ratio)
	if ratio > slower {
		y.slower++
		if testing.Verbose() {
			fmt.Fprintf(&y.where, "\n  %.2f %s", ratio, where())
		}
	}
}

// compare adds one request at all speeds.
func compare(t *testing.T, r tasks.Request, on *levels.Topology, spec string, tallies map[string]*tally) {
	t.Helper()
	jobs := map[string]*sim.Job{}
	ruled, _ := builtin.Choose(r, on, tasks.Plan{})
	for speed := range machinetest.Speeds {
		m := machinetest.Speeds[speed].Machine()
		c, err := priced.Choose(m, builtin.Ask(r, on), ruled, all.Submodules(), priced.Exact)
		if err != nil {
			t.Fatal(err)
		}
		best := ruled
		if !c.Ruled {
			best = c.Plans[0].Plan
		}
		ours := map[string]tasks.Plan{"rule": ruled, "priced": best}
		ns := map[string]float64{}
		for name, p := range ours {
			ns[name] = took(t, r, on, m, p, jobs)
		}
		for _, lib := range fixed.Libraries() {
			d, err := lib.Decide(r, on)
			if err != nil {
				t.Fatal(err)
			}
			theirs := took(t, r, on, m, d.Plan, jobs)
			for name, p := range ours {
				key := name + " to " + lib.Name
				if tallies[key] == nil {
					tallies[key] = &tally{}
				}
				if theirs == 0 || ns[name] == 0 {
					tallies[key].large++
				} else {
					tallies[key].add(ns[name]/theirs, func() string {
						return fmt.Sprintf("%v on %s at %s: %v; theirs %v", r, spec, machinetest.Speeds[speed].Name, p, d.Plan)
					})
				}
			}
		}
	}
}

// took returns the simulated time of a plan, ns; 0 if it has too many steps.
func took(t *testing.T, r tasks.Request, on *levels.Topology, m *machine.Machine, p tasks.Plan, jobs map[string]*sim.Job) float64 {
	t.Helper()
	job, known := jobs[p.String()]
	if !known {
		var err error
		if job, err = sim.Compile(r, on, p, all.Submodules()); err != nil {
			t.Fatalf("%v on %v by %v: %v", r, on, p, err)
		}
		jobs[p.String()] = job
	}
	if job.Steps() > mostSteps {
		return 0
	}
	result, err := job.Run(m, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return result.Time.Nanoseconds()
}

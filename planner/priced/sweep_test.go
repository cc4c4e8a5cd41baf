package priced_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine/machinetest"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// recorded has the best plans for many requests, as a search of the whole catalogue has found them.
const recorded = "testdata/best.txt"

// found is a plan and what it takes at each speed, ns.
type found struct {
	plan tasks.Plan
	ns   [3]float64 // by index into speeds; 0: not known
}

// cell is a request on a topology, and the best plans that a search has found.
type cell struct {
	coll  tasks.Collective
	spec  string
	bytes int64    // of a rank's buffer or block
	best  [3]found // by speed; ns only at its own
}

func (c *cell) key() string { return fmt.Sprintf("%v %s %d", c.coll, c.spec, c.bytes) }

// parseCells reads the lines of [recorded]: a collective, a topology and a size, then at each speed the time
// of the best plan, ns (0: not known), and the plan.
func parseCells(text []byte) (all []cell, err error) {
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		parts := strings.Split(s.Text(), " | ")
		words := strings.Fields(parts[0])
		if len(parts) != 1+len(machinetest.Speeds) || len(words) != 3 {
			return nil, fmt.Errorf("%q: want a collective, a topology and a size, and %d plans", s.Text(), len(machinetest.Speeds))
		}
		c := cell{spec: words[1]}
		if c.coll, err = tasks.ParseCollective(words[0]); err != nil {
			return nil, err
		}
		if c.bytes, err = strconv.ParseInt(words[2], 10, 64); err != nil {
			return nil, err
		}
		for speed, part := range parts[1:] {
			ns, plan, _ := strings.Cut(part, " ")
			if c.best[speed].ns[speed], err = strconv.ParseFloat(ns, 64); err != nil {
				return nil, err
			}
			if c.best[speed].plan, err = tasks.ParsePlan(plan); err != nil {
				return nil, err
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// mostSteps bounds a plan: cells whose chosen or best plan has more steps are left out, and counted.
const mostSteps = 3_000

// sampled is how many cells of a collective the sample has.
const sampled = 3

// The plan that is chosen by price, beside the best of the whole catalogue and beside the
// rule's, in simulated time. Cells that nobody has seen are drawn by tierflow-lab; the bounds
// are what is wanted of those.
func TestNearTheBest(t *testing.T) {
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := parseCells(text)
	if err != nil {
		t.Fatal(err)
	}
	var worst []ratio
	for _, tc := range []struct {
		coll        tasks.Collective
		worst, mean float64 // bounds: ratio to the best, and its geometric mean
	}{
		{tasks.Bcast, 1.3, 1.03},
		{tasks.Reduce, 1.3, 1.03},
		{tasks.Allreduce, 1.3, 1.03},
		{tasks.Allgather, 1.3, 1.03},
		{tasks.Gather, 1.3, 1.03},
		{tasks.Scatter, 1.3, 1.03},
		{tasks.ReduceScatter, 1.3, 1.03},
		{tasks.Alltoall, 1.3, 1.03},
	} {
		var of tally
		for _, c := range cells {
			if c.coll == tc.coll && of.cells < sampled*float64(len(machinetest.Speeds)) {
				of.add(t, &c)
			}
		}
		t.Logf("%-13v %s", tc.coll, &of)
		if mean := of.mean(of.sum); mean > tc.mean || of.worst > tc.worst {
			t.Errorf("%v: want at most %v on average, and %v at worst", tc.coll, tc.mean, tc.worst)
		}
		worst = append(worst, of.far...)
	}
	slices.SortFunc(worst, func(a, b ratio) int { return cmp.Compare(b.of, a.of) })
	for _, r := range worst[:min(len(worst), 60)] {
		t.Logf("%.2f %s", r.of, r.text)
	}
}

// ratio is a cell whose chosen plan takes longer than the best one.
type ratio struct {
	of   float64
	text string
}

// tally sums up ratios of simulated times.
type tally struct {
	sum, ruled, cells float64 // sums of logarithms, and how many
	worst, lost       float64 // to the best, and to the rule's plan
	beyond            int     // cells above 1.10
	large             int     // cells that were left out
	far               []ratio
}

func (y *tally) mean(sum float64) float64 { return math.Exp(sum / max(1, y.cells)) }

func (y *tally) String() string {
	return fmt.Sprintf("%.3f times the best on average, at most %.2f; %d of %.0f above 1.10; the rule's %.3f, against it at most %.2f; %d too large",
		y.mean(y.sum), y.worst, y.beyond, y.cells, y.mean(y.ruled), y.lost, y.large)
}

// add adds a cell at all speeds.
func (y *tally) add(t *testing.T, c *cell) {
	t.Helper()
	topo := tasktest.Topology(t, c.spec)
	r := tasktest.Request(c.coll, c.bytes)
	took := timer{t: t, r: r, on: topo, jobs: map[string]*sim.Job{}}
	ruled, _ := builtin.Choose(r, topo, tasks.Plan{})
	for speed := range machinetest.Speeds {
		choice, err := priced.Choose(machinetest.Speeds[speed].Machine(), builtin.Ask(r, topo), ruled, all.Submodules(), priced.Exact)
		if err != nil {
			t.Fatal(err)
		}
		chosen := ruled
		if !choice.Ruled {
			chosen = choice.Plans[0].Plan
		}
		mine, best, own := took.ns(chosen, speed), took.ns(c.best[speed].plan, speed), took.ns(ruled, speed)
		if mine == 0 || best == 0 || c.best[speed].ns[speed] == 0 {
			y.large++
			continue
		}
		over := mine / best
		y.sum, y.cells = y.sum+math.Log(max(1, over)), y.cells+1
		if own > 0 {
			y.ruled += math.Log(max(1, own/best))
			y.lost = max(y.lost, mine/own)
		}
		if y.worst = max(y.worst, over); over > 1.1 {
			y.beyond++
			prices, err := price.New(machinetest.Speeds[speed].Machine(), topo, r, all.Submodules())
			if err != nil {
				t.Fatal(err)
			}
			of := func(p tasks.Plan, ns float64) string {
				cost, _ := prices.Plan(p)
				return fmt.Sprintf("%v (%.1f µs, price %.1f)", p, ns/1e3, cost.NS/1e3)
			}
			y.far = append(y.far, ratio{over, fmt.Sprintf("%s at %s: %s, best %s", c.key(), machinetest.Speeds[speed].Name, of(chosen, mine), of(c.best[speed].plan, best))})
		}
	}
}

// timer simulates plans of a request, each compiled once.
type timer struct {
	t    *testing.T
	r    tasks.Request
	on   *levels.Topology
	jobs map[string]*sim.Job // by plan; nil: it has too many steps
}

// ns returns the simulated time of a plan; 0 if it has too many steps.
func (m *timer) ns(p tasks.Plan, speed int) float64 {
	m.t.Helper()
	job, known := m.jobs[p.String()]
	if !known {
		pairs := int64(m.on.Size()) * int64(m.on.Size())
		if many := m.r.Blocks() || strings.Contains(p.String(), "linear"); int64(m.on.Size()) <= mostSteps && !(many && pairs > mostSteps) {
			var err error
			if job, err = sim.Compile(m.r, m.on, p, all.Submodules()); err != nil {
				m.t.Fatalf("%v on %v by %v: %v", m.r, m.on, p, err)
			}
			if job.Steps() > mostSteps {
				job = nil
			}
		}
		m.jobs[p.String()] = job
	}
	if job == nil {
		return 0
	}
	result, err := job.Run(machinetest.Speeds[speed].Machine(), sim.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	return result.Time.Nanoseconds()
}

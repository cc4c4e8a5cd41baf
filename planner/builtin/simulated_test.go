package builtin_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/sim"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/tasks/tasktest"
)

// mostSteps bounds the simulation of one plan: exchanges of all with all on many nodes are
// left out.
const mostSteps = 50_000

// The built-in rule beside a plan of every algorithm, on simulated nodes of one rank each. The rule's
// plan may take most times as long as the best: what was found, rounded up. Simulated times are exact.
func TestRuleOnManyNodes(t *testing.T) {
	for _, test := range []struct {
		coll  tasks.Collective
		nodes []int
		most  float64
	}{
		{tasks.Bcast, []int{2, 16, 128, 512}, 1.3},
		{tasks.Reduce, []int{2, 16, 128}, 2.1},
		{tasks.Allreduce, []int{2, 16, 128}, 1.8},
	} {
		for _, n := range test.nodes {
			topo := tasktest.Topology(t, fmt.Sprintf("%dx1", n))
			for _, bytes := range []int64{64, 20 << 10} {
				p := besidesRule(t, tasktest.Request(test.coll, bytes), topo)
				if p.rule <= 0 || p.best <= 0 || p.ratio() > test.most {
					t.Errorf("%v of %s on %d nodes: the rule's plan takes %v, %.2f times the best, want at most %v: %v by %v (%d plans)",
						test.coll, tasks.FormatBytes(bytes), n, p.rule, p.ratio(), test.most, p.best, p.by, p.plans)
				}
			}
		}
	}
}

// point is what the rule's plan and the best one take.
type point struct {
	rule, best sim.Time
	by         tasks.Plan // the best
	plans      int
}

func (p *point) ratio() float64 { return float64(p.rule) / float64(p.best) }

// besidesRule simulates the rule's plan and those of single algorithms, whole and cut as
// the rule cuts.
func besidesRule(t *testing.T, r tasks.Request, topo *levels.Topology) (p point) {
	t.Helper()
	ruled, _ := builtin.Choose(r, topo, tasks.Plan{})
	p.rule, _ = simulated(t, r, topo, ruled, math.MaxInt64)
	p.best, p.by, p.plans = p.rule, ruled, 1
	for _, shape := range tasks.ShapesOf(r.Coll) {
		if shape == tasks.Han || shape == tasks.HanLockstep { // as flat, where nodes have one rank
			continue
		}
		for _, segment := range slices.Compact([]int64{min(ruled.Segment, max(r.Bytes(), 1)), max(r.Bytes(), 1)}) {
			cut := tasks.Plan{Shape: shape, Segment: segment, Window: max(ruled.Window, 8)}
			for _, plan := range (plans.Combinations{Registry: all.Submodules()}).Of(r, topo, cut) {
				took, ok := simulated(t, r, topo, plan, mostSteps)
				if !ok {
					continue
				}
				if p.plans++; took < p.best {
					p.best, p.by = took, plan
				}
			}
		}
	}
	return p
}

// simulated returns what a plan takes, unless it doesn't fit or has too many steps.
func simulated(t *testing.T, r tasks.Request, topo *levels.Topology, plan tasks.Plan, most int64) (took sim.Time, ok bool) {
	t.Helper()
	if isExchange(plan) && topo.Size() > 64 && most < math.MaxInt64 {
		return 0, false
	}
	job, err := sim.Compile(r, topo, plan, all.Submodules())
	if err != nil || job.Steps() > most {
		return 0, false
	}
	result, err := job.Run(machine.Assumed(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return result.Time, true
}

// isExchange reports whether all speak with all: compiling it takes as the square of nodes.
func isExchange(plan tasks.Plan) bool {
	return strings.Contains(plan.String(), "linear") && !strings.Contains(plan.String(), "shape=flat")
}

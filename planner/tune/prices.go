package tune

import (
	"fmt"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// dearRatio times the price of the cheapest plan is the highest price of a measured plan.
// Prices are seldom further off, see the README of package priced.
const dearRatio = 1.5

// In an alltoall of over manyRanks ranks one simulation takes seconds, and most plans fill the
// wires. Of these only the manyPlans cheapest are measured.
const (
	manyRanks = 256
	manyPlans = 4
)

// tooDear says of plans why they cost too much on the space's machine; empty: they don't, or
// have no price. It says nothing of any if there is no machine.
func (s Space) tooDear(plans []tasks.Plan, r tasks.Request, t *levels.Topology) []string {
	why := make([]string, len(plans))
	if s.Machine == nil || !s.Heuristics {
		return why
	}
	p, err := price.New(s.Machine, t, r, s.Registry)
	if err != nil {
		return why // it doesn't describe these links
	}
	ns, least := make([]float64, len(plans)), math.Inf(1)
	for i, q := range plans {
		if one, known := p.Plan(q); known && one.NS > 0 {
			ns[i], least = one.NS, min(least, one.NS)
		} else {
			ns[i] = priceLike(p, q, s.Registry)
		}
	}
	most, all := dearRatio*least, slices.DeleteFunc(slices.Clone(ns), func(x float64) bool { return x == 0 })
	many := r.Exchanges() && t.Size() > manyRanks && len(all) > manyPlans
	if many {
		slices.Sort(all)
		most = min(most, all[manyPlans-1])
	}
	for i := range plans {
		switch {
		case many && ns[i] == 0:
			why[i] = "priced out: no price among so many ranks"
		case ns[i] > most:
			why[i] = fmt.Sprintf("priced out: %.1f times the cheapest", ns[i]/least)
		}
	}
	return why
}

// priceLike returns the price of the plan most like q, ns; 0: there is none. It is for
// leaving q out, and too uncertain to leave others out.
func priceLike(p *price.Pricer, q tasks.Plan, reg submodules.Registry) float64 {
	if q.Shape == tasks.HanLockstep {
		q.Shape = tasks.Han // it takes no longer
	}
	share := 1.0
	for _, key := range q.Keys() {
		c, _ := q.Choice(key)
		c.N = 0
		if a, known := reg.Algorithm(c); known && a.Like != "" {
			c.Algorithm, share = a.Like, min(share, a.Share)
		}
		q = q.Set(key, c)
	}
	one, known := p.Plan(q)
	if !known {
		return 0
	}
	return one.NS * share
}

// cheapestPlan returns the cheapest plan on the space's machine. It may cut into segments
// beside the space's lists. It is false if the rule's plan costs least, or the space restricts
// the search.
func (s Space) cheapestPlan(r tasks.Request, t *levels.Topology) (p tasks.Plan, known bool) {
	if s.Machine == nil || !s.Heuristics || len(s.Shapes) > 0 || len(s.Segments) > 0 || len(s.Submodules) > 0 || !s.Plan.Equal(tasks.Plan{}) {
		return p, false
	}
	asked := builtin.Ask(r, t)
	ruled, _ := asked.Choose(tasks.Plan{})
	c, err := priced.Choose(s.Machine, asked, ruled, s.Registry, priced.Exact)
	if err != nil || c.Ruled || len(c.Plans) == 0 {
		return p, false
	}
	return s.namedPlan(c.Plans[0].Plan, r, t), true
}

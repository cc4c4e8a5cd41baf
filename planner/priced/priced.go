package priced

import (
	"cmp"
	"math"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/planner/plans"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Exact is for a machine with numbers as good as described: how far off prices are after corrections by
// simulations, as a share. Hasty is for one measured in a hurry, see the README of planner/builtin: by
// this share of its own time a plan must be faster than the rule's to take its place.
const (
	Exact = 0.04
	Hasty = 0.15
)

// Priced is a plan and its price.
type Priced struct {
	Plan      tasks.Plan
	Price     price.Price
	Simulated float64 // its time in a simulation, ns; 0: it was not simulated
	Expected  float64 // its time by its price and simulations of others, ns; 0: it was simulated
}

// Time returns the time of the plan as far as it is known, ns.
func (p *Priced) Time() float64 { return max(p.Simulated, p.Expected) }

// Choice is the chosen plan, with others.
type Choice struct {
	Plans []Priced // the chosen one, then the fastest others; empty: the rule's plan has no rival
	Ruled bool     // the rule's plan was chosen
	Rule  Priced   // the rule's; its times are 0 if it has no closed form and was not simulated
	Saved float64  // share of the rule's time that the chosen plan saves; 0 if it is the rule's
	Tried int      // simulated plans
	Large bool     // on hasty numbers: the rule's plan is too large to be simulated, so no other was tried
}

// maxPlans bounds the plans of a choice.
const maxPlans = 4

// Choose returns the fastest plan on a machine, of those that reg can compile. Prices
// say which plans to simulate first, and simulations how far off the prices are. ruled is the
// plan of the built-in rule. With the margin of a hasty measurement ruled stays unless another
// plan saves more than that share of its own time in simulations of both. It stays
// too if it is too large to be simulated. A machine without a link that t needs is an error.
func Choose(m *machine.Machine, asked *builtin.Asked, ruled tasks.Plan, reg submodules.Registry, margin float64) (Choice, error) {
	return ChooseAmong(m, asked, ruled, plans.Rivals(asked, ruled), reg, margin)
}

// ChooseAmong is [Choose] among ruled and the given rivals.
func ChooseAmong(m *machine.Machine, asked *builtin.Asked, ruled tasks.Plan, rivals []tasks.Plan, reg submodules.Registry, margin float64) (Choice, error) {
	r, t := asked.Request(), asked.On
	c := Choice{Ruled: true, Rule: Priced{Plan: ruled}}
	p, err := price.New(m, t, r, reg)
	if err != nil || r.Coll.HasData() && r.Count == 0 {
		return c, err
	}
	s := newRehearsal(m, asked, reg, 0)
	s.divideBudget(margin)
	all := candidates(p, ruled, rivals)
	if margin >= Hasty {
		all = slices.DeleteFunc(all, func(c candidate) bool { return !c.Plan.Equal(ruled) && s.longest(c.Plan) > mostMeasured })
	}
	if len(all) < 2 {
		c.Rule.Price, _ = p.Plan(ruled)
		return c, nil
	}
	isHasty := margin >= Hasty && s.left > 0
	if s.left > 0 && !s.simulateRule(ruled) && isHasty {
		c.Rule.Price, _ = p.Plan(ruled)
		c.Large = true
		return c, nil
	}
	if isHasty && s.own == 0 { // nothing is faster
		return c, nil
	}
	seen := s.compete(all)
	if len(seen) == 0 { // all are too large, and none has a price
		return c, nil
	}
	if isHasty {
		seen = s.prove(seen, s.own/(1+margin))
	}
	c.Plans = seen[:min(len(seen), maxPlans)]
	for _, o := range seen {
		if o.Simulated > 0 {
			c.Tried++
		}
		if o.Plan.Equal(ruled) {
			c.Rule = o
		}
	}
	best, own := seen[0].Time(), c.Rule.Time()
	switch {
	case own == 0 && margin >= Hasty: // on doubtful numbers the rule is as good as anything
		c.Plans = nil
	case own == 0:
		c.Ruled = false
	case own > best && (margin < Hasty || own > best*(1+margin)):
		c.Ruled, c.Saved = false, 1-best/own
	default:
		c.Plans = slices.Insert(slices.DeleteFunc(slices.Clone(c.Plans), func(o Priced) bool { return o.Plan.Equal(ruled) }), 0, c.Rule)
	}
	return c, nil
}

// Cheapest returns the fastest of some plans on a machine, as far as [Choose] finds out on hasty numbers: of
// plans without a price or a simulation the first one.
func Cheapest(m *machine.Machine, asked *builtin.Asked, all []tasks.Plan, reg submodules.Registry) tasks.Plan {
	p, err := price.New(m, asked.On, asked.Request(), reg)
	if err != nil || len(all) == 1 {
		return all[0]
	}
	s := newRehearsal(m, asked, reg, 0)
	s.divideBudget(Hasty)
	if seen := s.compete(candidates(p, all[0], all[1:])); len(seen) > 0 {
		return seen[0].Plan
	}
	return all[0]
}

// candidates lists the rule's plan and its rivals, the cheapest first, whether they can be compiled or not.
func candidates(p *price.Pricer, ruled tasks.Plan, rivals []tasks.Plan) (all []candidate) {
	least := math.Inf(1)
	for i, plan := range append([]tasks.Plan{ruled}, rivals...) {
		if i > 0 && plan.Equal(ruled) {
			continue
		}
		one := candidate{Priced: Priced{Plan: plan}}
		if one.Price, one.known = p.Plan(plan); one.known {
			least = min(least, one.Price.NS)
		}
		all = append(all, one)
	}
	for i := range all {
		if !all[i].known {
			all[i].Price.NS = least * 1.001 // after it
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.Price.NS, b.Price.NS) })
	return all
}

package priced

import (
	"cmp"
	"slices"

	"github.com/tierflow/tierflow/costs/machine"
	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// By which share of its own price a plan must be cheaper than the rule's plan to take its
// place: prices are that far off. The first is for a machine whose numbers are as good as
// described, see the sweep in this package's tests; the second for one that was measured in a
// hurry, as the README of planner/rule has it.
const (
	Exact = 0.04
	Hasty = 0.15
)

// Offer is a plan and its price.
type Offer struct {
	Plan  tasks.Plan
	Price price.Price
}

// Choice is what was chosen, and from what.
type Choice struct {
	Offers []Offer // the chosen one, then the best of other shapes and algorithms by price; empty: the rule's plan has no rival
	Ruled  bool    // the rule's plan was chosen
	Rule   Offer   // the rule's; its price is 0 if there is no closed form
	Saved  float64 // share of the rule's price that the chosen plan saves; 0 if it is the rule's
}

// maxOffers bounds the offers that a choice keeps.
const maxOffers = 4

// Choose returns the plan that costs least on a machine, of those that reg can compile.
// ruled is the plan of the built-in rule. It stays unless another one is cheaper by more
// than margin, a share of its own price, or unless a search would leave the rule's out. Where the
// rule's plan has no price the cheapest takes its place, unless margin is that of a hasty
// measurement. A
// machine without a link that t needs is an error.
func Choose(m *machine.Machine, r tasks.Request, t *levels.Topology, ruled tasks.Plan, reg submodules.Registry, margin float64) (Choice, error) {
	c := Choice{Ruled: true, Rule: Offer{Plan: ruled}}
	p, err := price.New(m, t, r)
	if err != nil {
		return c, err
	}
	own, known := p.Plan(ruled)
	c.Rule.Price = own
	all := offers(p, Candidates(r, t, ruled))
	for len(all) > 0 {
		if _, err := rule.Fits(r, t, all[0].Plan, reg); err == nil {
			break
		}
		all = all[1:]
	}
	if len(all) == 0 {
		return c, nil
	}
	least := all[0].Price.NS
	switch {
	case !known && margin >= Hasty: // on doubtful numbers the rule is as good as anything
		return c, nil
	case !known:
		c.Ruled = false
	case own.NS > least*(1+margin) || isWasteful(r, t, ruled):
		c.Ruled, c.Saved = false, 1-least/own.NS
	default:
		all = slices.Insert(all, 0, c.Rule)
	}
	c.Offers = apart(all, string(t.Level(t.Depth()-1).Symbol))
	return c, nil
}

// apart returns the first offer and the best ones of other shapes and algorithms between
// nodes, at most maxOffers: neighbours of a plan that cut it a little differently say little.
func apart(all []Offer, top string) (some []Offer) {
	seen := map[string]bool{}
	for _, o := range all {
		c, _ := o.Plan.Choice(top)
		if key := o.Plan.Shape.String() + c.Submodule + c.Algorithm; !seen[key] && len(some) < maxOffers {
			seen[key], some = true, append(some, o)
		}
	}
	return some
}

// offers prices plans and sorts them, the cheapest first. Those without a price are left
// out.
func offers(p *price.Pricer, plans []tasks.Plan) (all []Offer) {
	for _, plan := range plans {
		if cost, ok := p.Plan(plan); ok {
			all = append(all, Offer{plan, cost})
		}
	}
	slices.SortStableFunc(all, func(a, b Offer) int { return cmp.Compare(a.Price.NS, b.Price.NS) })
	return all
}

// isWasteful reports whether a search with heuristics would leave a plan out for what it
// does between nodes.
func isWasteful(r tasks.Request, t *levels.Topology, p tasks.Plan) bool {
	top, group := t.Level(t.Depth()-1).Symbol, t.Nodes()
	if p.Shape.IsFlat() {
		group = t.Size()
	}
	return slices.ContainsFunc(tasks.Operations(r.Coll, p.Shape), func(op tasks.Collective) bool {
		c, ok := p.For(tasks.Kind{Symbol: top, Op: op})
		return ok && rule.Wasted(r, t.Size(), p, op, c, group) != ""
	})
}

package tune

import (
	"cmp"
	"slices"

	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// strategy chooses a method's measurements. It reads its [knowledge] each time it is asked.
// All ranks' strategies answer alike.
type strategy interface {
	// next lists the next measurements; none: it is the end. Tried ones are left out.
	next() []work
	// estimate returns the time of a plan with request i, measured or predicted.
	estimate(i int, p tasks.Plan) (table.Candidate, bool)
}

// fastest is a strategy with a list of only the best plans.
type fastest interface {
	fastestPlans(i int) []table.Candidate
}

// estimates returns the time of each configuration of request i, measured or predicted,
// the fastest first. On a known machine none is predicted to take less than its bytes on the wire.
func estimates(k *knowledge, by strategy, i int) (all []table.Candidate) {
	if f, ok := by.(fastest); ok && !k.requests[i].Differ() {
		all = f.fastestPlans(i)
		k.raiseToWire(i, all)
		return all
	}
	for _, c := range k.candidates[i] {
		if c.Rejected != "" || k.refused[pointKey(k.requests[i], c.Plan)] {
			continue
		}
		if one, ok := by.estimate(i, c.Plan); ok {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, byTime)
	k.raiseToWire(i, all)
	return all
}

// raiseToWire raises predictions below what the bytes of request i take on the wire, on a known machine.
func (k *knowledge) raiseToWire(i int, all []table.Candidate) {
	if k.space.Machine == nil {
		return
	}
	least := price.Least(k.space.Machine, k.topology, k.requests[i])
	for at := range all {
		if c := &all[at]; c.From == table.FromPredicted && c.NS < least {
			c.NS, c.Low, c.High = least, least, max(c.High, least)
		}
	}
	slices.SortStableFunc(all, byTime)
}

// byTime orders candidates, the fastest first.
func byTime(a, b table.Candidate) int { return cmp.Compare(a.NS, b.NS) }

// choosy is a strategy for some requests only.
type choosy interface {
	// checkRequests returns an error if it knows none of them, before anything is measured.
	checkRequests() error
}

// farsighted is a strategy with estimates for other machines, too.
type farsighted interface {
	// entriesElsewhere lists entries for them. Measurements there count more.
	entriesElsewhere() []table.Entry
}

package tune

import (
	"cmp"
	"slices"

	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// strategy is how a method goes about it. It reads what its [knowledge] has learned since
// it was last asked. All ranks' strategies answer alike.
type strategy interface {
	// next lists what to measure next; nothing is the end. What was tried is left out.
	next() []work
	// estimate returns what a plan takes with request i, or is thought to take.
	estimate(i int, p tasks.Plan) (table.Candidate, bool)
}

// fastest is a strategy that lists no more plans than matter.
type fastest interface {
	fastestPlans(i int) []table.Candidate
}

// estimates returns what each configuration of request i takes, or is thought to, the
// fastest first.
func estimates(k *knowledge, by strategy, i int) (all []table.Candidate) {
	if f, ok := by.(fastest); ok && !k.requests[i].Differ() {
		return f.fastestPlans(i)
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
	return all
}

// byTime orders candidates, the fastest first.
func byTime(a, b table.Candidate) int { return cmp.Compare(a.NS, b.NS) }

// choosy is a strategy that doesn't know all requests.
type choosy interface {
	// check returns an error if it knows none of them, before anything is measured.
	checkRequests() error
}

// farsighted is a strategy that knows of other machines, too.
type farsighted interface {
	// elsewhere lists entries for them. What has been measured there counts more.
	entriesElsewhere() []table.Entry
}

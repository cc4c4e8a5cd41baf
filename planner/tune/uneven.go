package tune

import (
	"slices"

	"github.com/tierflow/tierflow/planner/table"
)

// unevenBlocks lists each configuration of the requests whose blocks differ.
func (k *knowledge) unevenBlocks() (all []work) {
	for i, r := range k.requests {
		if r.Differ() {
			all = append(all, k.everyPlan(i)...)
		}
	}
	return slices.DeleteFunc(all, func(w work) bool { return k.tried[w.keyOf()] })
}

// unevenRaces lists a race of the fastest of these, at most so many that take up to so many times as long, with the
// built-in rule's plan.
func (k *knowledge) unevenRaces(most int, times float64) (all []work) {
	for i, r := range k.requests {
		if !r.Differ() || k.raceWhen == RacesNever {
			continue
		}
		first := estimates(k, exhaustive{k}, i)
		if slices.ContainsFunc(first, func(c table.Candidate) bool { return k.wasRaced(i, c.Parsed) }) || len(first) < 2 {
			continue
		}
		w := work{request: r, plan: first[0].Parsed, run: k.racePlans, kind: Races}
		for at, c := range first[1:] {
			if at < most && c.NS <= times*first[0].NS || c.Parsed.Equal(k.rules[i]) {
				w.rivals = append(w.rivals, c.Parsed)
			}
		}
		if len(w.rivals) > 0 && !k.tried[w.keyOf()] {
			all = append(all, w)
		}
	}
	return all
}

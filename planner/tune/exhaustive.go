package tune

import (
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// Exhaustive runs every configuration with every size.
var Exhaustive = &Method{
	name: "exhaustive", about: "runs every configuration with every size",
	begin: func(k *knowledge) strategy { return exhaustive{k} },
}

// exhaustive believes only its measurements.
type exhaustive struct{ *knowledge }

// next lists each configuration with each size.
func (e exhaustive) next() (all []work) {
	for i := range e.requests {
		all = append(all, e.everyPlan(i)...)
	}
	return all
}

// everyPlan lists each configuration of request i without a measurement.
func (k *knowledge) everyPlan(i int) (all []work) {
	r := k.requests[i]
	for _, c := range k.candidates[i] {
		if _, ok := k.known[pointKey(r, c.Plan)]; !ok && c.Rejected == "" {
			all = append(all, work{request: r, plan: c.Plan, usual: c.Plan.Equal(k.rules[i]), beside: k.collective, kind: Collectives})
		}
	}
	return all
}

func (e exhaustive) estimate(i int, p tasks.Plan) (table.Candidate, bool) {
	return e.measuredTime(i, p)
}

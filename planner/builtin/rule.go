// Package builtin chooses plans without measurements: by the collective, its size and the
// layout of the ranks. It also outlines the tasks of plans.
//
// The rule is a file of package rules, builtin.rules: for the shape, for the cut into segments,
// and for the algorithm of each operation. For each part the first rule with true
// conditions counts.
//
// It never measures and reads no decision table. Equal arguments give equal plans, on all
// ranks.
//
//	plan, why := builtin.Choose(request, topology, tasks.Plan{})
package builtin

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Choose returns the plan while there are no measurements, and why. It follows HAN's
// reasoning (section III): shared memory inside nodes, event-driven trees between
// them, a chain or a ring once there are enough segments to fill it, and no
// hierarchy where it would break the order of a non-commutative operation. It fits
// the shape and the order in forced, and chooses for the tasks of the
// shape. Inside a node large messages go through shared memory. Goroutine ranks,
// see [levels.Topology.IsOneProcess], read them in place.
func Choose(r tasks.Request, t *levels.Topology, forced tasks.Plan) (tasks.Plan, Why) {
	return Ask(r, t).Choose(forced)
}

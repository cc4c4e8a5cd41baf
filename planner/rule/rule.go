// Package rule chooses plans without measurements: by the collective, its size and the
// layout of the ranks. It also outlines the tasks for which a plan has to choose.
//
// The rule is a file of package rules, builtin.rules: for the shape, for the cut into segments,
// and for the algorithm of each operation. Of each part the first rule counts whose conditions
// hold.
//
// It never measures and reads no decision table. Equal arguments give equal plans, on all
// ranks.
//
//	plan, why := rule.Choose(request, topology, tasks.Plan{})
package rule

import (
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// Choose returns the plan while there are no measurements, and why. It follows HAN's
// reasoning (section III): shared memory inside nodes, event-driven trees between
// them, a chain or a ring once there are enough segments to fill it, and no
// hierarchy where it would break the order of a non-commutative operation. It fits
// the shape and the order that forced asks for, and chooses for the tasks that the
// shape has. Inside a node large messages go through shared memory. Goroutine ranks,
// which [levels.Topology.IsOneProcess] reports, read them where they lie.
func Choose(r tasks.Request, t *levels.Topology, forced tasks.Plan) (tasks.Plan, Why) {
	return Ask(r, t).Choose(forced)
}

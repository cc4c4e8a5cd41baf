package choose

import (
	"fmt"
	"slices"

	"github.com/tierflow/tierflow/planner/table"
)

// leaveUnfinished takes the choice from plans with a time that was only predicted, where the prices of a known machine say
// something: a search that was cut short knows less of them than these do. Plans that were measured stay, and the fastest of
// them is chosen unless the machine's own plan, which the search may not have come to, is faster by its corrected price, as
// [Table.carry] compares them. Without any the machine decides. A table made to predict stays as it is: no longer search would
// measure its plans, and whoever made it wants them.
func (t *Table) leaveUnfinished(q *Question, c *Consulted) {
	if !t.Machine.isKnown() || t.Provenance.Method == table.Models {
		return
	}
	if _, err := t.Machine.Choose(q); err != nil || len(q.prices.Plans) == 0 {
		return // it compares no plans
	}
	measured := slices.DeleteFunc(slices.Clone(c.Estimates), func(e table.Estimate) bool {
		_, meets := q.meets(e.Plan)
		return e.Predicted || !meets
	})
	all := len(c.Estimates)
	c.Estimates = measured
	if c.pick(q); c.chosen < 0 {
		c.Why = "it only predicts here, and the prices of this machine decide"
		return
	}
	var off []float64
	if r, shared := classify(q.Request()); shared {
		_, off = t.Machine.correct(q, r, measured, "", q.On)
	}
	if ns := t.Machine.faster(q, measured[c.chosen:], off); ns > 0 {
		c.Why = fmt.Sprintf("the fastest plan that it has measured takes %.1f µs, and the machine's own %.1f by its corrected price", measured[c.chosen].NS/1e3, ns/1e3)
		c.chosen = -1
		return
	}
	if len(measured) < all {
		c.left = "plans that it only predicts are left out: the prices of this machine tell more"
	}
}

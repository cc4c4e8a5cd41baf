package choose

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/tasks"
)

// Rule chooses by the built-in rule. It always knows a plan.
type Rule struct{}

var _ Chooser = Rule{}

// Choose asks the rule to complete what is forced.
func (Rule) Choose(q *Question) (Answer, error) { return q.rule(), nil }

// Ruled is what the built-in rule says.
type Ruled struct {
	plan tasks.Plan
	why  rule.Why
}

// rule asks the built-in rule, once for a question.
func (q *Question) rule() *Ruled {
	if q.ruled == nil {
		base, why := q.Asked.Choose(q.Forced)
		q.ruled = &Ruled{q.Forced.Over(base), why}
	}
	return q.ruled
}

// Plan returns the rule's plan.
func (r *Ruled) Plan() (tasks.Plan, bool) { return r.plan, true }

// Explain gives the reasons of the rows that were taken.
func (r *Ruled) Explain(text *strings.Builder) {
	for _, why := range r.why.Lines(rule.Builtin()) {
		fmt.Fprintf(text, "  rule: %s\n", why)
	}
}

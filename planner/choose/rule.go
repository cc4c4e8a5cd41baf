package choose

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/builtin"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/tasks"
)

// Rule chooses by the built-in rule. It always knows a plan.
type Rule struct{}

var _ Chooser = Rule{}

// Choose asks the rule to complete the forced part.
func (Rule) Choose(q *Question) (Answer, error) { return q.rule(), nil }

// Complete returns the built-in rule's plan for a request that has all forced words.
func Complete(r tasks.Request, t *levels.Topology, reg submodules.Registry, forced tasks.Plan) tasks.Plan {
	q := &Question{Asked: builtin.Ask(r, t), Registry: reg, Forced: forced}
	return q.rule().plan
}

// Ruled is the answer of the built-in rule.
type Ruled struct {
	plan tasks.Plan
	why  builtin.Why
}

// rule asks the built-in rule, once for a question.
func (q *Question) rule() *Ruled {
	if q.ruled == nil {
		q.ruled = q.completeByRule()
	}
	return q.ruled
}

// Plan returns the rule's plan.
func (r *Ruled) Plan() (tasks.Plan, bool) { return r.plan, true }

// Explain gives the reasons of the rule's rows.
func (r *Ruled) Explain(text *strings.Builder) {
	for _, why := range r.why.Lines(builtin.Rules()) {
		fmt.Fprintf(text, "  rule: %s\n", why)
	}
}

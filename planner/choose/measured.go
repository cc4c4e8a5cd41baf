package choose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// Trial is a plan tried by the ranks.
type Trial struct {
	Plan  tasks.Plan
	NS    float64 // median of the slowest rank's times
	Calls int     // behind NS
}

// Measured is the plans tried by the ranks: the chosen one, then the others by their times.
type Measured struct{ Trials []Trial }

// Plan returns the first plan.
func (m *Measured) Plan() (tasks.Plan, bool) { return m.Trials[0].Plan, true }

// Time is the time of the first plan.
func (m *Measured) Time() (ns float64, known bool) { return m.Trials[0].NS, true }

// Explain says the time of each plan.
func (m *Measured) Explain(text *strings.Builder) {
	best := m.Trials[0]
	fmt.Fprintf(text, "  predicted: %.1f µs, measured by these ranks in %d calls, beside %d other plans\n", best.NS/1e3, best.Calls, len(m.Trials)-1)
	for _, o := range m.Trials[1:] {
		fmt.Fprintf(text, "  runner-up: %v: %.1f µs in %d calls, %s\n", o.Plan, o.NS/1e3, o.Calls, difference(best.NS, o.NS))
	}
}

// IsOpen reports whether trying plans could change the decision. It couldn't if somebody has
// forced plans or written rules, or if a table has measured this very request.
func (d *Decision) IsOpen() bool {
	if len(d.Forced.Keys()) > 0 || d.Forced.String() != "" {
		return false
	}
	return !slices.ContainsFunc(d.Answers, func(a Answer) bool {
		f, is := a.(Final)
		return is && f.IsFinal()
	})
}

// Finalists lists the plans to try for a question, the decided one first and no more than most.
// Prices on m choose them; nil stands for the assumed machine.
func (d *Decision) Finalists(q *Question, m *Machine, most int) ([]tasks.Plan, error) {
	known := assumedFor(q.On)
	if m.isKnown() {
		known = m.Machine
	}
	ruled := q.rule().plan
	c, err := priced.Choose(known, q.Asked, ruled, q.Registry, priced.Exact)
	if err != nil {
		return nil, err
	}
	all := []tasks.Plan{d.Plan, ruled}
	for _, o := range c.Plans {
		all = append(all, o.Plan)
	}
	all = distinct(all, q.Request().Bytes())
	return all[:min(len(all), most)], nil
}

// distinct drops plans that do the same for so many bytes as one before.
func distinct(all []tasks.Plan, bytes int64) (some []tasks.Plan) {
	var seen []string
	for _, p := range all {
		if text := table.Canonical(p, bytes).String(); !slices.Contains(seen, text) {
			seen, some = append(seen, text), append(some, p)
		}
	}
	return some
}

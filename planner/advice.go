package planner

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/planner/rule"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// advice is what a decision table said of a request.
type advice struct {
	table.Answer
	from   *loadedTable
	chosen int      // index into Estimates; -1: none
	unfit  []string // why faster ones were not taken
}

// consult asks t for its fastest plan that the request and topology allow, where nothing
// is forced. The built-in rule fills in levels that the table's machines don't have.
// p is the plan if the advice has chosen one.
func (t *loadedTable) consult(forced tasks.Plan, r tasks.Request, on *levels.Topology, by policy) (a *advice, p tasks.Plan) {
	a = &advice{Answer: t.Find(r, on, by.links), from: t, chosen: -1}
	for i, e := range a.Estimates {
		p := forced.Over(e.Plan)
		_, err := rule.Fits(r, on, p, by.registry)
		if err != nil {
			base, _ := rule.Choose(r, on, p)
			p = p.Over(base)
			_, err = rule.Fits(r, on, p, by.registry)
		}
		if err == nil {
			a.chosen = i
			return a, p
		}
		a.unfit = append(a.unfit, fmt.Sprintf("%v: %v", e.Plan, err))
	}
	if a.Why == "" {
		a.Why = "none of its plans fits the request"
	}
	return a, tasks.Plan{}
}

// callsOf says what calls a table's times are of.
var callsOf = map[costs.Regime]string{costs.Single: "single calls", costs.BackToBack: "calls back to back"}

// maxRunnersUp bounds the plans that Explain lists beside the chosen one.
const maxRunnersUp = 3

// explain adds what a table said, and on what grounds.
func (a *advice) explain(b *strings.Builder) {
	if a == nil {
		fmt.Fprintf(b, "  predicted: nothing, there is no decision table\n")
		return
	}
	if a.chosen < 0 {
		fmt.Fprintf(b, "  table: %s, but the built-in rule decides: %s\n", a.from.origin, a.Why)
		fmt.Fprintf(b, "  predicted: nothing\n")
		return
	}
	fmt.Fprintf(b, "  table: %s, of %s", a.from.origin, callsOf[a.from.Regime()])
	if on := a.from.Provenance.Simulated; on != "" {
		fmt.Fprintf(b, ", simulated on %s", on)
	}
	b.WriteByte('\n')
	for _, n := range a.Neighbours {
		fmt.Fprintf(b, "  entry: %s of %s on %v, weight %.2f", n.Entry.Collective, tasks.FormatBytes(n.Entry.Bytes), n.Entry.Levels, n.Weight)
		if a.Elsewhere != "" {
			fmt.Fprintf(b, ", from elsewhere: %s", a.Elsewhere)
		}
		b.WriteByte('\n')
	}
	best := a.Estimates[a.chosen]
	fmt.Fprintf(b, "  predicted: %.1f µs, %s\n", best.NS/1e3, best.From)
	for _, why := range a.unfit {
		fmt.Fprintf(b, "  faster but unfit: %s\n", why)
	}
	for i, e := range a.Estimates[a.chosen+1:] {
		if i == maxRunnersUp {
			break
		}
		fmt.Fprintf(b, "  runner-up: %v: %.1f µs, %s\n", e.Plan, e.NS/1e3, e.From)
	}
}

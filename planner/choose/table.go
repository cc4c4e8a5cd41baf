package choose

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/tasks"
)

// Table chooses by a decision table.
type Table struct {
	*table.Table
	Origin string // a file's name, or an option
	// Machine corrects times of machines of other sizes, see [table.Answer]. nil: they stay as they are.
	Machine *Machine
}

var _ Chooser = (*Table)(nil)

// Choose asks the table for its fastest plan that fits the request and the topology, with the forced
// part in it: first of those that have the forced words, then of others with these in place of their own. The
// built-in rule fills in levels that the table's machines lack. On a known machine what an unfinished search
// left open is left to the machine's own prices, unless the table's method is [table.Models].
func (t *Table) Choose(q *Question) (Answer, error) {
	c := &Consulted{Answer: t.Find(q.Request(), q.On, q.Links, q.Registry), From: t, chosen: -1}
	if c.Carried != nil && len(c.Estimates) > 0 {
		leave := false
		if c.carried, leave = t.carry(q, &c.Answer); leave {
			c.Why = "its times are carried over: " + c.carried
			return c, nil
		}
	}
	c.pick(q)
	if c.chosen >= 0 && c.Carried == nil && (c.Estimates[c.chosen].Predicted || t.Provenance.CutShort()) {
		t.leaveUnfinished(q, c)
	}
	return c, nil
}

// pick chooses among the estimates.
func (c *Consulted) pick(q *Question) {
	c.chosen, c.unfit = -1, nil
	for _, i := range q.meetingFirst(c.Estimates) {
		e := &c.Estimates[i]
		p := q.Forced.Over(e.Plan)
		_, err := q.Fits(p, q.Registry)
		if err != nil {
			base, _ := q.Asked.Choose(p)
			p = p.Over(base)
			_, err = q.Fits(p, q.Registry)
		}
		if err == nil {
			c.chosen, c.plan = i, p
			return
		}
		c.unfit = append(c.unfit, fmt.Sprintf("%v: %v", e.Plan, err))
	}
	if c.Why == "" {
		c.Why = "none of its plans fits the request"
	}
}

// meetingFirst returns the places of a table's plans: first of those with the forced words.
func (q *Question) meetingFirst(all []table.Estimate) []int {
	var meeting, others []int
	for i := range all {
		if _, ok := q.meets(all[i].Plan); ok {
			meeting = append(meeting, i)
		} else {
			others = append(others, i)
		}
	}
	return append(meeting, others...)
}

// Consulted is the answer of a decision table.
type Consulted struct {
	table.Answer
	From    *Table
	chosen  int    // index into Estimates; -1: none
	carried string // from where and how, if times are of a machine of other sizes
	left    string // why faster plans that are only predicted are not taken
	plan    tasks.Plan
	unfit   []string // why faster ones were not taken
}

// Plan returns the table's plan, if one of them fits.
func (c *Consulted) Plan() (tasks.Plan, bool) { return c.plan, c.chosen >= 0 }

// Time is the plan's time in the table.
func (c *Consulted) Time() (ns float64, known bool) {
	if c.chosen < 0 {
		return 0, false
	}
	return c.Estimates[c.chosen].NS, true
}

// IsFinal reports whether the plan was measured, and not only predicted.
func (c *Consulted) IsFinal() bool {
	return c.chosen >= 0 && c.Estimates[c.chosen].From == table.FromMeasured
}

// callsOf describes the calls behind a table's times.
var callsOf = map[costs.Regime]string{costs.Single: "single calls", costs.BackToBack: "calls back to back"}

// maxRunnersUp bounds the plans beside the chosen one in Explain.
const maxRunnersUp = 3

// Explain says the table's answer, and its grounds.
func (c *Consulted) Explain(text *strings.Builder) {
	if c.chosen < 0 {
		fmt.Fprintf(text, "  table: %s leaves it open: %s\n", c.From.Origin, c.Why)
		return
	}
	fmt.Fprintf(text, "  table: %s, of %s", c.From.Origin, callsOf[c.From.Regime()])
	if on := c.From.Provenance.Simulated; on != "" {
		fmt.Fprintf(text, ", simulated on %s", on)
	}
	text.WriteByte('\n')
	for _, n := range c.Neighbours {
		fmt.Fprintf(text, "  entry: %s of %s on %v, weight %.2f", n.Entry.Collective, tasks.FormatBytes(n.Entry.Bytes), n.Entry.Levels, n.Weight)
		if c.Elsewhere != "" {
			fmt.Fprintf(text, ", from elsewhere: %s", c.Elsewhere)
		}
		text.WriteByte('\n')
	}
	if c.carried != "" {
		fmt.Fprintf(text, "  carried over: %s\n", c.carried)
	}
	if c.left != "" {
		fmt.Fprintf(text, "  table: %s\n", c.left)
	}
	best := c.Estimates[c.chosen]
	fmt.Fprintf(text, "  predicted: %.1f µs, %s\n", best.NS/1e3, best.From)
	for _, why := range c.unfit {
		fmt.Fprintf(text, "  faster but unfit: %s\n", why)
	}
	for i, e := range c.Estimates[c.chosen+1:] {
		if i == maxRunnersUp {
			break
		}
		fmt.Fprintf(text, "  runner-up: %v: %.1f µs, %s\n", e.Plan, e.NS/1e3, e.From)
	}
}

package choose

import (
	"fmt"
	"strings"

	"github.com/tierflow/tierflow/costs/price"
	"github.com/tierflow/tierflow/planner/priced"
	"github.com/tierflow/tierflow/tasks"
)

// taskCosts explain prices by their tasks.
type taskCosts struct{ *price.Pricer } // nil: there are none

// costs returns the costs behind p's decision.
func (p *Prices) costs() taskCosts {
	pricer, err := price.New(p.machine.Machine, p.on, p.as, p.registry)
	if err != nil {
		return taskCosts{}
	}
	return taskCosts{pricer}
}

// tasks returns the times of a plan's tasks, and the number of segments.
func (c taskCosts) tasks(plan tasks.Plan) (all []price.Task, segments float64) {
	if c.Pricer != nil {
		all, segments, _ = c.Tasks(plan)
	}
	return all, segments
}

// explain says the cost of each kind of task in a plan.
func (c taskCosts) explain(text *strings.Builder, plan tasks.Plan) {
	all, segments := c.tasks(plan)
	for _, t := range all {
		choice, _ := plan.For(t.Kind)
		fmt.Fprintf(text, "  task %v: %v: %.1f µs", t.Kind, choice, t.First/1e3)
		if segments > 1 {
			fmt.Fprintf(text, " for the first of %.4g segments, %.1f for each further one", segments, t.Each/1e3)
		}
		text.WriteString("; counted over the links above\n")
	}
}

// loss says by how much another plan takes longer, with the task and the term of the price that add
// most.
func (c taskCosts) loss(best, other *priced.Priced) string {
	mine, its := best.Time(), other.Time()
	if its == mine {
		return "the same"
	}
	text := difference(mine, its)
	if its < mine {
		return text
	}
	if kind, ns := c.slower(best.Plan, other.Plan); ns > 0 {
		text += fmt.Sprintf(": its %v takes %.1f µs more", kind, ns/1e3)
	}
	most, at := 0.0, -1
	terms := best.Price.Values()
	for i, ns := range other.Price.Values() {
		if ns-terms[i] > most {
			most, at = ns-terms[i], i
		}
	}
	if at < 0 || best.Price.NS == 0 {
		return text
	}
	return fmt.Sprintf("%s: %s takes %.1f µs more", text, price.Names()[at], most/1e3)
}

// difference says by how much longer or shorter another plan takes than the chosen one.
func difference(best, other float64) string {
	if other < best {
		return fmt.Sprintf("%.1f%% less, which is too little to be sure", 100*(1-other/best))
	}
	return fmt.Sprintf("%.1f%% more", 100*(other/best-1))
}

// slower returns the kind of task with the largest loss in another plan, over all segments, ns. 0: none
// has any.
func (c taskCosts) slower(best, other tasks.Plan) (kind tasks.Kind, most float64) {
	mine := map[tasks.Kind]float64{}
	all, segments := c.tasks(best)
	if len(all) == 0 {
		return kind, 0
	}
	for _, t := range all {
		mine[t.Kind] += t.First + float64((segments-1)*t.Each)
	}
	all, segments = c.tasks(other)
	its := map[tasks.Kind]float64{}
	for _, t := range all {
		if its[t.Kind] += t.First + float64((segments-1)*t.Each); its[t.Kind]-mine[t.Kind] > most {
			kind, most = t.Kind, its[t.Kind]-mine[t.Kind]
		}
	}
	return kind, most
}

// parts lists the terms of a price from 50 ns on, in µs.
func parts(t *price.Terms) string {
	var all []string
	for i, ns := range t.Values() {
		if ns >= 50 {
			all = append(all, fmt.Sprintf("%s %.1f", price.Names()[i], ns/1e3))
		}
	}
	return strings.Join(all, ", ")
}

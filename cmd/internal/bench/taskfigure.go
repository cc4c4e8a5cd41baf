package bench

import (
	"fmt"
	"math"
	"strings"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// mostDrawn bounds the leaders in a figure: more are drawn at equal distances.
const mostDrawn = 8

// DrawnLeaders returns the indexes of the leaders to draw.
func DrawnLeaders(n int) (all []int) {
	for i := range min(n, mostDrawn) {
		all = append(all, i*n/min(n, mostDrawn))
	}
	return all
}

// drawSettling draws figure 3 of the HAN paper: a stage task's time at each of its
// occurrences in a pipeline, one panel for each plan.
func drawSettling(name string, segment int64, j kit.Job, results []taskResult) ([]byte, error) {
	figure := viz.Panels{Title: fmt.Sprintf("%s, segments of %s, %v", name, tasks.FormatBytes(segment), j.Topology())}
	for _, r := range results {
		p := viz.Plot{Title: PlanTitle(r.Plan, name), X: "occurrence in the pipeline", Y: "µs", Style: viz.Lines, First: 1}
		settled := 0
		for _, s := range r.Series {
			if s.Settled {
				settled = max(settled, s.From+1)
			} else {
				settled = math.MaxInt
			}
		}
		if settled != math.MaxInt {
			p.Title += fmt.Sprintf(": settled from %d on", settled)
		}
		for _, i := range DrawnLeaders(len(r.Series)) {
			s := r.Series[i]
			p.Series = append(p.Series, viz.Series{Name: LeaderName(r.LeaderRanks[s.Leader]), Values: micros(s.NS)})
		}
		figure.Plots = append(figure.Plots, p)
	}
	return figure.SVG()
}

// LeaderName returns the name of a leader in a figure.
func LeaderName(r levels.Rank) string { return fmt.Sprintf("r%d", r) }

// micros returns ns in µs.
func micros(ns []float64) []float64 {
	all := make([]float64, len(ns))
	for i := range ns {
		all[i] = ns[i] / 1e3
	}
	return all
}

// PlanTitle returns the choices of a plan for some kinds of tasks. Their names may be joined.
func PlanTitle(plan string, names ...string) string {
	p, err := tasks.ParsePlan(plan)
	if err != nil {
		return plan
	}
	joined := strings.Join(names, "")
	var parts []string
	for _, key := range p.Keys() {
		if c, ok := p.Choice(key); ok && strings.Contains(joined, key) {
			parts = append(parts, fmt.Sprintf("%s=%v", key, c))
		}
	}
	return strings.Join(parts, " ")
}

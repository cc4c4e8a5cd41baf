package trials

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/cmd/internal/bench"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/charts"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
)

// mostDrawn bounds the leaders in a figure: more are drawn at equal distances.
const mostDrawn = 8

// drawnLeaders returns the indexes of the leaders to draw.
func drawnLeaders(n int) (all []int) {
	for i := range min(n, mostDrawn) {
		all = append(all, i*n/min(n, mostDrawn))
	}
	return all
}

// drawSettling draws figure 3 of the HAN paper: a stage task's time at each of its
// occurrences in a pipeline, one panel for each plan.
func drawSettling(topology string, results []bench.TaskResult) (figure charts.Panels, err error) {
	if len(results) == 0 {
		return figure, nil
	}
	name := results[0].Task
	figure.Title = fmt.Sprintf("%s, segments of %s, %s", name, tasks.FormatBytes(results[0].Key.Segment), topology)
	for _, r := range results {
		if !slices.ContainsFunc(r.Series, func(s costs.Series) bool { return len(s.NS) > 1 }) {
			return figure, fmt.Errorf("%s occurs once in a pipeline, so there is no series to draw; tierflow-lab overlap --svg draws tasks side by side", name)
		}
		p := charts.Plot{Title: planTitle(r.Plan, name), X: "occurrence in the pipeline", Y: "µs", Style: charts.Lines, First: 1}
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
		for _, i := range drawnLeaders(len(r.Series)) {
			s := r.Series[i]
			if s.Leader < 0 || s.Leader >= len(r.LeaderRanks) {
				return figure, fmt.Errorf("%s of leader %d; there are %d", name, s.Leader, len(r.LeaderRanks))
			}
			p.Series = append(p.Series, charts.Series{Name: leaderName(r.LeaderRanks[s.Leader]), Values: micros(s.NS)})
		}
		figure.Plots = append(figure.Plots, p)
	}
	return figure, nil
}

// leaderName returns the name of a leader in a figure.
func leaderName(r levels.Rank) string { return fmt.Sprintf("r%d", r) }

// micros returns ns in µs.
func micros(ns []float64) []float64 {
	all := make([]float64, len(ns))
	for i := range ns {
		all[i] = ns[i] / 1e3
	}
	return all
}

// planTitle returns the choices of a plan for some kinds of tasks. Their names may be joined.
func planTitle(plan string, names ...string) string {
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

package bench

import (
	"fmt"
	"math"
	"strings"

	"github.com/tierflow/tierflow/cmd/tierflow/kit"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// mostDrawn bounds the leaders in a figure: more are drawn at equal distances.
const mostDrawn = 8

// drawnLeaders returns the indexes of the leaders that are drawn.
func drawnLeaders(n int) (all []int) {
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
		p := viz.Plot{Title: planTitle(r.Plan, name), X: "occurrence in the pipeline", Y: "µs", Style: viz.Lines, First: 1}
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
			p.Series = append(p.Series, viz.Series{Name: leaderName(r.LeaderRanks[s.Leader]), Values: micros(s.NS)})
		}
		figure.Plots = append(figure.Plots, p)
	}
	return figure.SVG()
}

// drawOverlaps draws figures 2 and 6 of the HAN paper: what tasks take alone, at once and
// in turn on each leader, one panel for each pair and plan.
func drawOverlaps(segment int64, j kit.Job, results []overlapResult) ([]byte, error) {
	figure := viz.Panels{Title: fmt.Sprintf("tasks on leaders, segments of %s, %v", tasks.FormatBytes(segment), j.Topology())}
	for _, r := range results {
		p := viz.Plot{Title: planTitle(r.Plan, r.Kinds[0], r.Kinds[1]), X: "leader", Y: "µs", Style: viz.Bars}
		drawn := drawnLeaders(len(r.LeaderRanks))
		for _, i := range drawn {
			p.Names = append(p.Names, leaderName(r.LeaderRanks[i]))
		}
		add := func(name string, ns []float64) {
			if len(ns) == 0 {
				return
			}
			s := viz.Series{Name: name}
			for _, i := range drawn {
				s.Values = append(s.Values, ns[i]/1e3)
			}
			p.Series = append(p.Series, s)
		}
		add(r.Kinds[0]+" alone", r.Alone[0].Leaders)
		add(r.Kinds[1]+" alone", r.Alone[1].Leaders)
		add(r.Kinds[0]+" and "+r.Kinds[1]+" at once", r.Together.Leaders)
		if r.First != nil {
			add("first "+r.Stage+" in turn", r.First)
			add("settled "+r.Stage+" in turn", r.InTurn.Leaders)
		} else if r.Stage != "" {
			add(r.Stage+" in turn", r.InTurn.Leaders)
		}
		figure.Plots = append(figure.Plots, p)
	}
	return figure.SVG()
}

func leaderName(r levels.Rank) string { return fmt.Sprintf("r%d", r) }

// micros returns ns in µs.
func micros(ns []float64) []float64 {
	all := make([]float64, len(ns))
	for i := range ns {
		all[i] = ns[i] / 1e3
	}
	return all
}

// planTitle returns what a plan says of some kinds of tasks, whose names may be joined.
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

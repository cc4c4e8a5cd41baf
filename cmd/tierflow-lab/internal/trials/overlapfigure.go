package trials

import (
	"fmt"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/charts"
	"github.com/tierflow/tierflow/tasks"
)

// drawOverlaps draws figures 2 and 6 of the HAN paper: times of tasks alone, at once and
// in turn on each leader, one panel for each pair and plan.
func drawOverlaps(segment int64, j kit.Job, results []overlapResult) charts.Panels {
	figure := charts.Panels{Title: fmt.Sprintf("tasks on leaders, segments of %s, %v", tasks.FormatBytes(segment), j.Topology())}
	for _, r := range results {
		p := charts.Plot{Title: planTitle(r.Plan, r.Kinds[0], r.Kinds[1]), X: "leader", Y: "µs", Style: charts.Bars}
		drawn := drawnLeaders(len(r.LeaderRanks))
		for _, i := range drawn {
			p.Names = append(p.Names, leaderName(r.LeaderRanks[i]))
		}
		add := func(name string, ns []float64) {
			if len(ns) == 0 {
				return
			}
			s := charts.Series{Name: name}
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
	return figure
}

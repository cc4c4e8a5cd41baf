package methods

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	tuning "github.com/tierflow/tierflow/cmd/tierflow/tune"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// comparison is the output of compare.
type comparison struct {
	Topology    string           `json:"topology"`
	Links       string           `json:"links"`
	Regime      costs.Regime     `json:"regime"`
	Stop        string           `json:"stop"`
	Interrupted bool             `json:"interrupted,omitempty"` // what follows is what was done until then
	Methods     []comparedMethod `json:"methods"`
	Points      []comparedPoint  `json:"points"`
}

// comparedMethod is one method of tuning, or the built-in rule.
type comparedMethod struct {
	Method         string           `json:"method"`
	Configurations int              `json:"configurations"` // of all sizes together, that it chose from
	Measurements   int              `json:"measurements"`   // that it made
	Planned        int              `json:"planned"`        // that it would have made without a budget
	Rejected       table.Counts     `json:"rejected"`
	TuningS        float64          `json:"tuning_s"`
	Spent          []tuning.Spent   `json:"spent"`
	Reuse          tune.Reuse       `json:"reuse"`         // of tasks that were measured by themselves
	MeanSlowdown   float64          `json:"mean_slowdown"` // geometric
	MaxSlowdown    float64          `json:"max_slowdown"`
	Choices        []comparedChoice `json:"choices"`
}

// comparedChoice is a method's choice for one point, measured again.
type comparedChoice struct {
	Collective string  `json:"collective"`
	Bytes      int64   `json:"bytes"`
	Plan       string  `json:"plan"`
	NS         float64 `json:"ns"`
	Low        float64 `json:"low_ns"`
	High       float64 `json:"high_ns"`
	Expected   float64 `json:"expected_ns"` // by the table
	Slowdown   float64 `json:"slowdown"`    // against exhaustive search's choice; 1 for a tie
	Tie        bool    `json:"tie"`
}

// comparedPoint sums up what exhaustive search measured of one point.
type comparedPoint struct {
	Collective string  `json:"collective"`
	Bytes      int64   `json:"bytes"`
	Measured   int     `json:"measured"` // configurations
	Best       float64 `json:"best_ns"`
	Median     float64 `json:"median_ns"`
	Mean       float64 `json:"mean_ns"`
}

// fillMeans computes the means over all points.
func (c *comparison) fillMeans() {
	for i := range c.Methods {
		m := &c.Methods[i]
		logs := 0.0
		for _, choice := range m.Choices {
			logs += math.Log(choice.Slowdown)
			m.MaxSlowdown = max(m.MaxSlowdown, choice.Slowdown)
		}
		if len(m.Choices) > 0 {
			m.MeanSlowdown = math.Exp(logs / float64(len(m.Choices)))
		}
	}
}

func (c *comparison) print(r *tuning.Rank) error {
	fmt.Fprintf(r.Stdout, "# %s; %s; calls %v\n# ends: %s\n", c.Topology, c.Links, c.Regime, c.Stop)
	w := tabwriter.NewWriter(r.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "method\tconfigurations\tmeasured\tof\tseconds\tmean slowdown\tmax\tties\t")
	for _, m := range c.Methods {
		ties := 0
		for _, choice := range m.Choices {
			if choice.Tie {
				ties++
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.1f\t%.3f\t%.3f\t%d/%d\t\n", m.Method, m.Configurations, m.Measurements, m.Planned, m.TuningS, m.MeanSlowdown, m.MaxSlowdown, ties, len(m.Choices))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, m := range c.Methods {
		if len(m.Spent) > 0 {
			fmt.Fprintf(r.Stdout, "%s: %s\n", m.Method, tuning.SpentText(m.Spent))
		}
		if m.Reuse.Tasks > 0 {
			fmt.Fprintf(r.Stdout, "%s: tasks: %v\n", m.Method, m.Reuse)
		}
	}
	fmt.Fprintln(w, "\ncollective\tbytes\tmedian/best\tmean/best\tslowdowns\tchoice of exhaustive\t")
	for at, p := range c.Points {
		var slow []string
		plan := ""
		for i, m := range c.Methods {
			for _, choice := range m.Choices {
				if choice.Collective == p.Collective && choice.Bytes == p.Bytes {
					slow = append(slow, fmt.Sprintf("%.2f", choice.Slowdown))
					if i == 0 {
						plan = choice.Plan
					}
				}
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f\t%s\t%s\t\n", p.Collective, tasks.FormatBytes(p.Bytes), c.Points[at].Median/p.Best, p.Mean/p.Best, strings.Join(slow, " "), plan)
	}
	return w.Flush()
}

// figures draws figures 8 and 9 of the HAN paper: how long the methods search, and what
// their choices take, beside the median and the mean of all configurations.
func (c *comparison) figures() viz.Panels {
	seconds := viz.Plot{Title: "time of the search", X: "method", Y: "s", LogY: true, Style: viz.Bars, Names: []string{""}}
	chosen := viz.Plot{Title: "time of what was chosen", X: "collective and bytes", Y: "µs", LogY: true, Style: viz.Bars}
	for _, point := range c.Points {
		chosen.Names = append(chosen.Names, point.Collective+" "+tasks.FormatBytes(point.Bytes))
	}
	for _, m := range c.Methods {
		searched, s := viz.Series{Name: m.Method, Values: []float64{m.TuningS}}, viz.Series{Name: m.Method}
		for _, point := range c.Points {
			ns := math.NaN()
			for _, choice := range m.Choices {
				if choice.Collective == point.Collective && choice.Bytes == point.Bytes {
					ns = choice.NS
				}
			}
			s.Values = append(s.Values, ns/1e3)
		}
		seconds.Series, chosen.Series = append(seconds.Series, searched), append(chosen.Series, s)
	}
	median, mean := viz.Series{Name: "median of all"}, viz.Series{Name: "mean of all"}
	for _, point := range c.Points {
		median.Values, mean.Values = append(median.Values, point.Median/1e3), append(mean.Values, point.Mean/1e3)
	}
	chosen.Series = append(chosen.Series, median, mean)
	return viz.Panels{Title: "methods of tuning, " + c.Topology, Columns: 1, Plots: []viz.Plot{seconds, chosen}}
}

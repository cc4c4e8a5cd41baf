package methods

import (
	"fmt"
	"io"
	"math"
	"strings"

	tuning "github.com/tierflow/tierflow/cmd/internal/tune"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/charts"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/labkit"
	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/planner/table"
	"github.com/tierflow/tierflow/planner/tune"
	"github.com/tierflow/tierflow/tasks"
)

// comparison is the output of compare.
type comparison struct {
	Topology    string           `json:"topology"`
	Links       string           `json:"links"`
	Regime      costs.Regime     `json:"regime"`
	Stop        string           `json:"stop"`
	Interrupted bool             `json:"interrupted,omitempty"` // the rest is as far as it came
	Methods     []comparedMethod `json:"methods"`
	Points      []comparedPoint  `json:"points"`
}

// comparedMethod is one method of tuning, or the built-in rule.
type comparedMethod struct {
	Method         string           `json:"method"`
	Configurations int              `json:"configurations"` // of all sizes together, to choose from
	Measurements   int              `json:"measurements"`   // made
	Planned        int              `json:"planned"`        // without a budget
	Rejected       table.Counts     `json:"rejected"`
	TuningS        float64          `json:"tuning_s"`
	Spent          []tuning.Spent   `json:"spent"`
	Reuse          tune.Reuse       `json:"reuse"`         // of tasks measured by themselves
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

// comparedPoint sums up exhaustive search's measurements of one point.
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
		var slowdowns []float64
		for _, choice := range m.Choices {
			slowdowns = append(slowdowns, choice.Slowdown)
			m.MaxSlowdown = max(m.MaxSlowdown, choice.Slowdown)
		}
		m.MeanSlowdown = labkit.GeometricMean(slowdowns)
	}
}

// choiceAt returns the method's choice for a point, if the budget left one.
func (m *comparedMethod) choiceAt(p comparedPoint) (comparedChoice, bool) {
	for _, choice := range m.Choices {
		if choice.Collective == p.Collective && choice.Bytes == p.Bytes {
			return choice, true
		}
	}
	return comparedChoice{}, false
}

// trueShares returns the least and the most that a table says of its choices, as shares of what they take; a
// dash without times.
func (m *comparedMethod) trueShares() string {
	least, most := math.Inf(1), 0.0
	for _, c := range m.Choices {
		if c.Expected > 0 && c.NS > 0 {
			least, most = min(least, c.Expected/c.NS), max(most, c.Expected/c.NS)
		}
	}
	if most == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f–%.2f", least, most)
}

// print writes a line for each method, the time and tasks of searches, and a line for each point.
func (c *comparison) print(w io.Writer) {
	fmt.Fprintf(w, "# %s; %s; calls %v\n# ends: %s\n", c.Topology, c.Links, c.Regime, c.Stop)
	fmt.Fprintln(w, "method\tconfigurations\tmeasured\tof\tseconds\tmean slowdown\tmax\tties\tpredicted/true\t")
	for _, m := range c.Methods {
		ties := 0
		for _, choice := range m.Choices {
			if choice.Tie {
				ties++
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.1f\t%.3f\t%.3f\t%d/%d\t%s\t\n", m.Method, m.Configurations, m.Measurements, m.Planned, m.TuningS, m.MeanSlowdown, m.MaxSlowdown, ties, len(m.Choices), m.trueShares())
	}
	for _, m := range c.Methods {
		if len(m.Spent) > 0 {
			fmt.Fprintf(w, "%s: %s\n", m.Method, tuning.SpentText(m.Spent))
		}
		if m.Reuse.Tasks > 0 {
			fmt.Fprintf(w, "%s: tasks: %v\n", m.Method, m.Reuse)
		}
	}
	fmt.Fprintln(w, "\ncollective\tbytes\tmedian/best\tmean/best\tslowdowns\tchoice of exhaustive\t")
	for _, p := range c.Points {
		var slow []string
		for _, m := range c.Methods {
			if choice, ok := m.choiceAt(p); ok {
				slow = append(slow, fmt.Sprintf("%.2f", choice.Slowdown))
			}
		}
		exhaustive, _ := c.Methods[0].choiceAt(p)
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f\t%s\t%s\t\n", p.Collective, tasks.FormatBytes(p.Bytes), p.Median/p.Best, p.Mean/p.Best, strings.Join(slow, " "), exhaustive.Plan)
	}
}

// figures draws figures 8 and 9 of the HAN paper: how long the methods search, and what
// their choices take, beside the median and the mean of all configurations.
func (c *comparison) figures() charts.Panels {
	seconds := charts.Plot{Title: "time of the search", X: "method", Y: "s", LogY: true, Style: charts.Bars, Names: []string{""}}
	chosen := charts.Plot{Title: "time of what was chosen", X: "collective and bytes", Y: "µs", LogY: true, Style: charts.Bars}
	for _, point := range c.Points {
		chosen.Names = append(chosen.Names, point.Collective+" "+tasks.FormatBytes(point.Bytes))
	}
	for _, m := range c.Methods {
		searched, s := charts.Series{Name: m.Method, Values: []float64{m.TuningS}}, charts.Series{Name: m.Method}
		for _, point := range c.Points {
			ns := math.NaN()
			if choice, ok := m.choiceAt(point); ok {
				ns = choice.NS
			}
			s.Values = append(s.Values, ns/1e3)
		}
		seconds.Series, chosen.Series = append(seconds.Series, searched), append(chosen.Series, s)
	}
	median, mean := charts.Series{Name: "median of all"}, charts.Series{Name: "mean of all"}
	for _, point := range c.Points {
		median.Values, mean.Values = append(median.Values, point.Median/1e3), append(mean.Values, point.Mean/1e3)
	}
	chosen.Series = append(chosen.Series, median, mean)
	return charts.Panels{Title: "methods of tuning, " + c.Topology, Columns: 1, Plots: []charts.Plot{seconds, chosen}}
}

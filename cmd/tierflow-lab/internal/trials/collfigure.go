package trials

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/cmd/internal/bench"
	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/charts"
	"github.com/tierflow/tierflow/tasks"
)

// drawRows returns a panel for each collective that bench coll measured: by size or, of one size
// from all roots, by root.
func drawRows(topology string, all []bench.Result) charts.Panels {
	figure := charts.Panels{Title: topology, Columns: 1}
	all = slices.DeleteFunc(all, func(r bench.Result) bool { return r.Shape == "tcp" })
	for at := 0; at < len(all); {
		end := at
		for end < len(all) && all[end].Collective == all[at].Collective {
			end++
		}
		rows := all[at:end]
		at = end
		sizes := sizesOf(rows)
		if len(sizes) == 1 && !slices.ContainsFunc(rows, func(r bench.Result) bool { return r.Roots == nil }) {
			figure.Plots = append(figure.Plots, plotRoots(rows))
		} else {
			figure.Plots = append(figure.Plots, plotSizes(rows, sizes))
		}
	}
	return figure
}

// sizesOf lists the sizes of rows in their order.
func sizesOf(rows []bench.Result) (all []int64) {
	for _, r := range rows {
		if !slices.Contains(all, r.Bytes) {
			all = append(all, r.Bytes)
		}
	}
	return all
}

// plotRoots draws the time from each root.
func plotRoots(rows []bench.Result) charts.Plot {
	p := charts.Plot{X: "root", Y: "µs", Style: charts.Lines, Step: rows[0].Roots.Every}
	var ratios []string
	for _, r := range rows {
		ratios = append(ratios, fmt.Sprintf("%.2f", r.Roots.Ratio))
		p.Series = append(p.Series, charts.Series{Name: r.Name(), Values: r.Roots.P50, Low: r.Roots.Lows, High: r.Roots.P99})
	}
	p.Title = fmt.Sprintf("%s of %s: slowest root to fastest %s", rows[0].Collective, tasks.FormatBytes(rows[0].Bytes), strings.Join(ratios, ", "))
	return p
}

// plotSizes draws the times of all sizes, one series for each plan.
func plotSizes(rows []bench.Result, sizes []int64) charts.Plot {
	p := charts.Plot{Title: rows[0].Collective, X: "bytes", Y: "µs", LogY: true, Style: charts.Lines}
	for _, n := range sizes {
		p.Names = append(p.Names, tasks.FormatBytes(n))
	}
	for _, r := range rows {
		at := slices.IndexFunc(p.Series, func(s charts.Series) bool { return s.Name == r.Name() })
		if at < 0 {
			at = len(p.Series)
			p.Series = append(p.Series, charts.Series{Name: r.Name(), Values: none(sizes), Low: none(sizes), High: none(sizes)})
		}
		s, i := p.Series[at], slices.Index(sizes, r.Bytes)
		s.Values[i], s.Low[i], s.High[i] = r.P50, r.Min, r.P99
		if r.Roots != nil {
			s.Values[i], s.Low[i], s.High[i] = r.Roots.Median, r.Roots.Min, r.Roots.Max
		}
	}
	return p
}

// none returns no value for each size.
func none(sizes []int64) []float64 { return slices.Repeat([]float64{math.NaN()}, len(sizes)) }

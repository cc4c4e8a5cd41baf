package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

// draw draws the results with --svg on rank 0, the only one to have them.
func (b *Coll) draw(stdout io.Writer) error {
	if b.svg == "" || len(b.Results.All) == 0 {
		return nil
	}
	figure, err := b.figure().SVG()
	if err != nil {
		return err
	}
	return kit.WriteOutput(stdout, b.svg, figure)
}

// figure returns a panel for each collective: by size or, of one size from all roots, by
// root.
func (b *Coll) figure() viz.Panels {
	figure := viz.Panels{Title: fmt.Sprint(b.Job.Topology()), Columns: 1}
	for at := 0; at < len(b.Results.All); {
		coll, end := b.Results.All[at].Collective, at
		for end < len(b.Results.All) && b.Results.All[end].Collective == coll {
			end++
		}
		rows := slices.DeleteFunc(slices.Clone(b.Results.All[at:end]), func(r Result) bool { return r.Shape == "tcp" })
		at = end
		sizes := sizesOf(rows)
		switch {
		case len(rows) == 0:
		case len(sizes) == 1 && rows[0].Roots != nil:
			figure.Plots = append(figure.Plots, plotRoots(rows, b.every))
		default:
			figure.Plots = append(figure.Plots, plotSizes(rows, sizes))
		}
	}
	return figure
}

// sizesOf lists the sizes of rows in their order.
func sizesOf(rows []Result) (all []int64) {
	for _, r := range rows {
		if !slices.Contains(all, r.Bytes) {
			all = append(all, r.Bytes)
		}
	}
	return all
}

// name tells the row's plan from others: the plan as given, a lone shape without its key. Without a plan it is chosen
// anew for each size.
func (r Result) name() string {
	name := "chosen"
	if r.asked != "" {
		name = strings.ReplaceAll(strings.TrimPrefix(r.asked, "shape="), ",", " ")
	}
	if r.TLS != "" {
		name += ", TLS"
	}
	return name
}

// plotRoots draws the time from each root. every is their distance.
func plotRoots(rows []Result, every int) viz.Plot {
	p := viz.Plot{X: "root", Y: "µs", Style: viz.Lines, Step: every}
	var ratios []string
	for _, r := range rows {
		ratios = append(ratios, fmt.Sprintf("%.2f", r.Roots.Ratio))
		p.Series = append(p.Series, viz.Series{Name: r.name(), Values: r.Roots.P50, Low: r.Roots.Lows, High: r.Roots.P99})
	}
	p.Title = fmt.Sprintf("%s of %s: slowest root to fastest %s", rows[0].Collective, tasks.FormatBytes(rows[0].Bytes), strings.Join(ratios, ", "))
	return p
}

// plotSizes draws the times of all sizes, one series for each plan.
func plotSizes(rows []Result, sizes []int64) viz.Plot {
	p := viz.Plot{Title: rows[0].Collective, X: "bytes", Y: "µs", LogY: true, Style: viz.Lines}
	for _, n := range sizes {
		p.Names = append(p.Names, tasks.FormatBytes(n))
	}
	for _, r := range rows {
		at := slices.IndexFunc(p.Series, func(s viz.Series) bool { return s.Name == r.name() })
		if at < 0 {
			at = len(p.Series)
			p.Series = append(p.Series, viz.Series{Name: r.name(), Values: none(sizes), Low: none(sizes), High: none(sizes)})
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

package viz

import (
	"bytes"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot is a chart of numbers: a value per name and series.
type Plot struct {
	Title, X, Y string
	LogY        bool     // values of 0 and less are left out
	Lines       bool     // joins the values of a series; else they are points
	Names       []string // along the horizontal axis; nil: numbers from 1
	Series      []Series
}

// Series is the values of one kind; NaN where there is none.
type Series struct {
	Name   string
	Values []float64
}

// plotColors tell series apart, for the colour-blind too (Okabe and Ito).
var plotColors = []color.RGBA{
	{0, 114, 178, 255},
	{213, 94, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{230, 159, 0, 255},
	{86, 180, 233, 255},
	{0, 0, 0, 255},
}

// SVG draws the plot. The same numbers give the same bytes.
func (p Plot) SVG() ([]byte, error) {
	chart := plot.New()
	chart.Title.Text, chart.X.Label.Text, chart.Y.Label.Text = p.Title, p.X, p.Y
	chart.Legend.Top, chart.Legend.Left = true, true
	shown := 0
	for i, s := range p.Series {
		var at plotter.XYs
		for x, y := range s.Values {
			if !math.IsNaN(y) && !math.IsInf(y, 0) && (!p.LogY || y > 0) {
				at = append(at, plotter.XY{X: float64(x + 1), Y: y})
			}
		}
		if len(at) == 0 {
			continue
		}
		shown += len(at)
		if err := p.add(chart, i, s.Name, at); err != nil {
			return nil, fmt.Errorf("plot %s: %w", s.Name, err)
		}
	}
	if shown == 0 {
		return nil, fmt.Errorf("plot %s: there is nothing to draw", p.Title)
	}
	if p.LogY {
		chart.Y.Scale, chart.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if p.Names != nil {
		chart.X.Tick.Marker = named(p.Names)
		chart.X.Tick.Label.Rotation, chart.X.Tick.Label.XAlign = math.Pi/4, draw.XRight
	}
	canvas := vgsvg.New(10*vg.Inch, 6*vg.Inch)
	chart.Draw(draw.New(canvas))
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	return b.Bytes(), err
}

func (p Plot) add(chart *plot.Plot, i int, name string, at plotter.XYs) error {
	points, err := plotter.NewScatter(at)
	if err != nil {
		return err
	}
	points.Color = plotColors[i%len(plotColors)]
	points.Shape = plotter.DefaultGlyphStyle.Shape
	chart.Add(points)
	if !p.Lines {
		chart.Legend.Add(name, points)
		return nil
	}
	line, err := plotter.NewLine(at)
	if err != nil {
		return err
	}
	line.Color = points.Color
	chart.Add(line)
	chart.Legend.Add(name, line, points)
	return nil
}

// named puts a name at each whole number from 1.
type named []string

// Ticks are those of the axis.
func (n named) Ticks(_, _ float64) []plot.Tick {
	all := make([]plot.Tick, len(n))
	for i, name := range n {
		all[i] = plot.Tick{Value: float64(i + 1), Label: name}
	}
	return all
}

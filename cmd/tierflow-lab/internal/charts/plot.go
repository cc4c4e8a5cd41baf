package charts

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/tierflow/tierflow/viz"
)

// Plot is a chart of numbers: a value per name and series. A linear axis of values begins
// at 0.
type Plot struct {
	Title, X, Y string
	LogY        bool // values of 0 and less are left out
	Style       Style
	Names       []string // along the horizontal axis; nil: numbers from First
	First       int      // number of the first value if there are no names
	Step        int      // from there to the next number; 0: 1
	Series      []Series
}

// Style is how the values of a series are drawn.
type Style uint8

const (
	// Points draws a mark for each value.
	Points Style = iota
	// Lines joins the marks of a series.
	Lines
	// Bars draws the values of a name as bars side by side, from 0 or, on a logarithmic
	// axis, from its end.
	Bars
)

// Series is the values of one kind; NaN is none.
type Series struct {
	Name   string
	Values []float64
	// Low and High are the ends of a whisker through each value; nil: there are none. An end
	// that the axis doesn't have, or NaN, is left out.
	Low, High []float64
}

// plotShapes tell series apart if their marks lie on each other.
var plotShapes = []draw.GlyphDrawer{
	draw.RingGlyph{}, draw.CrossGlyph{}, draw.SquareGlyph{}, draw.PlusGlyph{}, draw.TriangleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{},
}

// SVG draws the plot. The same numbers give the same bytes.
func (p Plot) SVG() ([]byte, error) {
	return Panels{Plots: []Plot{p}}.SVG()
}

// points are the drawable values of a series, with their whiskers.
type points struct {
	plotter.XYs
	plotter.YErrors         // as distances from the values
	shift           float64 // of whiskers, so that those of several series stand side by side
}

// whiskerShift is the distance of the first series' whiskers from the last one's, of the distance of names.
const whiskerShift = 0.12

// pointsOf returns the drawable values of series i.
func (p Plot) pointsOf(i int) (all points) {
	s := p.Series[i]
	first, step := 1, 1 // of names
	if p.Names == nil {
		first, step = p.First, max(1, p.Step)
	}
	switch place := (float64(i) + 0.5) / float64(len(p.Series)); {
	case p.Style == Bars:
		all.shift = barsWidth * (place - 0.5)
	case len(p.Series) > 1:
		all.shift = whiskerShift * float64(step) * (float64(i)/float64(len(p.Series)-1) - 0.5)
	}
	for x, y := range s.Values {
		if math.IsNaN(y) || math.IsInf(y, 0) || p.LogY && y <= 0 {
			continue
		}
		all.XYs = append(all.XYs, plotter.XY{X: float64(first + step*x), Y: y})
		if len(s.Low) == len(s.Values) && len(s.High) == len(s.Values) {
			low, high := s.Low[x], s.High[x]
			if math.IsNaN(low) || p.LogY && low <= 0 {
				low = y
			}
			if math.IsNaN(high) {
				high = y
			}
			all.YErrors = append(all.YErrors, struct{ Low, High float64 }{y - low, high - y})
		}
	}
	return all
}

// draw adds the series to a chart and to the legend, which may be in it already.
func (p Plot) draw(chart *plot.Plot, l *legend) error {
	shown := 0
	for i, s := range p.Series {
		at := p.pointsOf(i)
		if len(at.XYs) == 0 {
			continue
		}
		shown += len(at.XYs)
		if err := p.add(chart, l, i, s.Name, at); err != nil {
			return fmt.Errorf("plot %s: %w", s.Name, err)
		}
	}
	if shown == 0 {
		return fmt.Errorf("plot %s: there is nothing to draw", p.Title)
	}
	return nil
}

// add adds series i.
func (p Plot) add(chart *plot.Plot, l *legend, i int, name string, at points) error {
	place := l.place(name)
	paint := viz.SeriesColor(place)
	var shown []plot.Thumbnailer
	if p.Style == Bars {
		b := &bars{at: slices.Clone(at.XYs), color: paint, of: len(p.Series), index: i}
		chart.Add(b)
		shown = append(shown, b)
	} else {
		marks, err := plotter.NewScatter(at.XYs)
		if err != nil {
			return err
		}
		marks.Color, marks.Shape, marks.Radius = paint, plotShapes[place%len(plotShapes)], vg.Points(3)
		shown = append(shown, marks)
		if p.Style == Lines {
			line, err := plotter.NewLine(at.XYs)
			if err != nil {
				return err
			}
			line.Color = paint
			chart.Add(line)
			shown = append(shown, line)
		}
		chart.Add(marks)
	}
	if len(at.YErrors) == len(at.XYs) {
		for j := range at.XYs {
			at.XYs[j].X += at.shift
		}
		ends, err := plotter.NewYErrorBars(at)
		if err != nil {
			return err
		}
		ends.Color = paint
		if p.Style == Bars {
			ends.Color = color.Black
		}
		chart.Add(ends)
	}
	l.add(name, shown)
	return nil
}

// chart returns an empty chart with axes. width is about how many characters fit below it.
func (p Plot) chart(width int) *plot.Plot {
	c := plot.New()
	c.Title.Text, c.X.Label.Text, c.Y.Label.Text = p.Title, p.X, p.Y
	c.Title.Padding, c.X.Label.Padding, c.Y.Label.Padding = vg.Points(4), vg.Points(2), vg.Points(2)
	c.Y.Tick.Marker = plain{plot.DefaultTicks{}}
	if p.LogY {
		c.Y.Scale, c.Y.Tick.Marker = plot.LogScale{}, decades{}
	}
	if p.Names == nil {
		c.X.Tick.Marker = plain{plot.DefaultTicks{}}
		return c
	}
	c.X.Tick.Marker = named(p.Names)
	length := 0
	for _, name := range p.Names {
		length = max(length, utf8.RuneCountInString(name)+2)
	}
	if length*len(p.Names) > width {
		c.X.Tick.Label.Rotation, c.X.Tick.Label.XAlign, c.X.Tick.Label.YAlign = math.Pi/4, draw.XRight, draw.YTop
	}
	return c
}

// bars is a series of a chart in which the bars of each name stand side by side.
type bars struct {
	at        plotter.XYs
	color     color.Color
	of, index int // series, and which of them this is
}

// barsWidth is that of all bars of a name together, of the distance of names.
const barsWidth = 0.8

// Plot draws the bars.
func (b *bars) Plot(c draw.Canvas, chart *plot.Plot) {
	x, y := chart.Transforms(&c)
	bottom := y(max(0, chart.Y.Min))
	width := barsWidth / float64(b.of)
	for _, p := range b.at {
		left := p.X - barsWidth/2 + float64(b.index)*width
		top := y(p.Y)
		c.FillPolygon(b.color, c.ClipPolygonXY([]vg.Point{{X: x(left), Y: bottom}, {X: x(left), Y: top}, {X: x(left + width), Y: top}, {X: x(left + width), Y: bottom}}))
	}
}

// DataRange returns the range of the bars: from 0 up on a linear axis.
func (b *bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, xmax, ymin, ymax = plotter.XYRange(b.at)
	return xmin - 0.5, xmax + 0.5, ymin, ymax
}

// Thumbnail draws the legend's sample.
func (b *bars) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(b.color, []vg.Point{c.Min, {X: c.Min.X, Y: c.Max.Y}, c.Max, {X: c.Max.X, Y: c.Min.Y}})
}

package charts

import (
	"bytes"
	"errors"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Panels is plots side by side with one legend. Series of one name look alike in all of
// them.
type Panels struct {
	Title   string // over all; empty: none
	Columns int    // panels beside each other; 0: as many as above each other
	Plots   []Plot
}

// Sizes of a drawing.
const (
	plotWidth, plotHeight   = 10 * vg.Inch, 6 * vg.Inch // of a plot by itself
	panelWidth, panelHeight = 4.4 * vg.Inch, 3 * vg.Inch
	margin                  = 0.15 * vg.Inch // around plots and legend
	runeWidth               = 6 * vg.Inch / 72
)

// SVG draws the panels. The same numbers give the same bytes.
func (p Panels) SVG() ([]byte, error) {
	if len(p.Plots) == 0 {
		return nil, errors.New("plot " + p.Title + ": there is nothing to draw")
	}
	columns := p.Columns
	if columns <= 0 {
		columns = int(math.Ceil(math.Sqrt(float64(len(p.Plots)))))
	}
	columns = min(columns, len(p.Plots))
	tiles := draw.Tiles{Cols: columns, Rows: (len(p.Plots) + columns - 1) / columns, PadX: margin, PadY: 2 * margin}
	width, height := plotWidth, plotHeight
	switch {
	case columns > 1:
		width, height = panelWidth, panelHeight
	case len(p.Plots) > 1:
		height = panelHeight
	}
	entries := newLegend()
	charts := make([][]*plot.Plot, tiles.Rows)
	for i := range charts {
		charts[i] = make([]*plot.Plot, columns)
	}
	for i, one := range p.Plots {
		chart := one.chart(int(width / runeWidth))
		if err := one.draw(chart, entries); err != nil {
			return nil, err
		}
		switch {
		case !one.LogY:
			chart.Y.Min = min(0, chart.Y.Min)
		case one.Style == Bars:
			chart.Y.Min /= 2 // else the lowest bar has no height
		}
		charts[i/columns][i%columns] = chart
	}
	return p.paint(charts, tiles, width, height, entries)
}

// paint draws charts of a width and height, and what stands around them.
func (p Panels) paint(charts [][]*plot.Plot, tiles draw.Tiles, width, height vg.Length, entries *legend) ([]byte, error) {
	side := entries.width()
	top := margin
	if p.Title != "" {
		top += 0.3 * vg.Inch
	}
	canvas := vgsvg.New(width*vg.Length(tiles.Cols)+side+3*margin, height*vg.Length(tiles.Rows)+top+margin)
	whole := draw.New(canvas)
	whole.FillPolygon(color.White, []vg.Point{whole.Min, {X: whole.Min.X, Y: whole.Max.Y}, whole.Max, {X: whole.Max.X, Y: whole.Min.Y}})
	if p.Title != "" {
		style := charts[0][0].Title.TextStyle
		style.XAlign, style.YAlign = draw.XCenter, draw.YTop
		whole.FillText(style, vg.Point{X: whole.Center().X, Y: whole.Max.Y - margin}, p.Title)
	}
	for i, row := range plot.Align(charts, tiles, draw.Crop(whole, margin, -side-2*margin, margin, -top)) {
		for j, part := range row {
			if charts[i][j] != nil {
				charts[i][j].Draw(part)
			}
		}
	}
	entries.Draw(draw.Crop(whole, whole.Max.X-whole.Min.X-side-margin, -margin, margin, -top))
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	return b.Bytes(), err
}

// legend has an entry for each name of a series, in the order of their first use.
type legend struct {
	plot.Legend
	names []string // place in it: the series' colour and shape
	added []string // those of names that have an entry
}

func newLegend() *legend {
	l := &legend{Legend: plot.NewLegend()}
	l.Top, l.Left, l.Padding = true, true, vg.Points(4)
	return l
}

// place returns the index of a name, and adds it if it is new.
func (l *legend) place(name string) int {
	if i := slices.Index(l.names, name); i >= 0 {
		return i
	}
	l.names = append(l.names, name)
	return len(l.names) - 1
}

// add adds an entry, unless there is one of this name.
func (l *legend) add(name string, shown []plot.Thumbnailer) {
	if !slices.Contains(l.added, name) {
		l.added = append(l.added, name)
		l.Add(name, shown...)
	}
}

// width returns how much place the legend takes beside the plots.
func (l *legend) width() vg.Length {
	r := l.Rectangle(draw.Canvas{})
	return r.Max.X - r.Min.X
}

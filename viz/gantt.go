package viz

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"image/color"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Gantt is a chart of simultaneous activities: a row for each thing that does something, and
// bars along a common axis of time.
type Gantt struct {
	Title string
	Rows  []GanttRow
}

// GanttRow is the activities of one thing. Bars of a row that overlap hide each other.
type GanttRow struct {
	Name string
	Bars []GanttBar
}

// GanttBar is a time. Bars of a kind have one colour, and the legend names it.
type GanttBar struct {
	Kind       string
	Label      string // shown if there is room
	Begin, End time.Duration
}

// Sizes of the chart, pixels.
const (
	ganttNames  = 130 // width of the rows' names
	ganttWidth  = 800 // of the time
	ganttRow    = 34  // from row to row
	ganttBar    = 24
	ganttMargin = 12
	ganttLetter = 7 // about the width of one
)

// SVG draws the chart. The same bars give the same bytes.
func (g Gantt) SVG() ([]byte, error) {
	var kinds []string
	end := time.Duration(0)
	for _, r := range g.Rows {
		for _, b := range r.Bars {
			if b.Begin < 0 || b.End < b.Begin {
				return nil, fmt.Errorf("chart %s: %s %s from %v to %v; allowed are times from 0 on, and ends behind beginnings", g.Title, r.Name, b.Label, b.Begin, b.End)
			}
			if !slices.Contains(kinds, b.Kind) {
				kinds = append(kinds, b.Kind)
			}
			end = max(end, b.End)
		}
	}
	if end == 0 {
		return nil, errors.New("chart " + g.Title + ": there is nothing to draw")
	}
	const legend, axis = 28, 40
	top := 30 + legend
	bottom := top + ganttRow*len(g.Rows)
	width, height := ganttNames+ganttWidth+3*ganttMargin, bottom+axis
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14">%s</text>`+"\n", ganttMargin, html.EscapeString(g.Title))
	x := ganttMargin
	for i, kind := range kinds {
		fmt.Fprintf(&b, `<rect x="%d" y="34" width="12" height="12" fill="%s"/><text x="%d" y="44">%s</text>`+"\n", x, SeriesHTML(i), x+16, html.EscapeString(kind))
		x += 32 + ganttLetter*utf8.RuneCountInString(kind)
	}
	g.drawAxis(&b, end, top, bottom)
	for i, r := range g.Rows {
		r.draw(&b, end, top+i*ganttRow, kinds)
	}
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}

// at is the place of a time on the axis.
func at(t, end time.Duration) float64 {
	return ganttNames + 2*ganttMargin + ganttWidth*float64(t)/float64(end)
}

// drawAxis draws lines at round milliseconds.
func (g Gantt) drawAxis(b *bytes.Buffer, end time.Duration, top, bottom int) {
	const ms = float64(time.Millisecond)
	for _, t := range ganttTicks(float64(end) / ms) {
		x := at(time.Duration(t*ms), end)
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#cccccc"/><text x="%.1f" y="%d" text-anchor="middle">%s ms</text>`+"\n",
			x, top-4, x, bottom, x, bottom+18, strconv.FormatFloat(t, 'f', -1, 64))
	}
}

// ganttTicks returns the multiples of a round step, 1, 2 or 5 times a power of ten, from 0 to end. Behind 0 there are
// ten at most.
func ganttTicks(end float64) (all []float64) {
	const most = 10
	power := int(math.Floor(math.Log10(end / most)))
	for _, digit := range []float64{1, 2, 5, 10} {
		tick := func(i int) float64 { // whole numbers before the division: 0.3, not three times 0.1
			if power < 0 {
				return float64(i) * digit / math.Pow10(-power)
			}
			return float64(i) * digit * math.Pow10(power)
		}
		if tick(most+1) <= end {
			continue
		}
		for i := 0; tick(i) <= end; i++ {
			all = append(all, tick(i))
		}
		break
	}
	return all
}

// draw draws a row whose upper edge is at y.
func (r GanttRow) draw(b *bytes.Buffer, end time.Duration, y int, kinds []string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", ganttNames+ganttMargin, y+16, html.EscapeString(r.Name))
	for _, bar := range r.Bars {
		i := slices.Index(kinds, bar.Kind)
		from, to := at(bar.Begin, end), at(bar.End, end)
		edge := 0.0 // narrow bars would be nothing else
		if to-from > 4 {
			edge = 0.5
		}
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" stroke="white" stroke-width="%g"><title>%s %s: %v, from %v</title></rect>`+"\n",
			from, y, to-from, ganttBar, SeriesHTML(i), edge, html.EscapeString(bar.Kind), html.EscapeString(bar.Label), roundTime(bar.End-bar.Begin), roundTime(bar.Begin))
		if float64(ganttLetter*utf8.RuneCountInString(bar.Label)) < to-from {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle" fill="%s">%s</text>`+"\n", (from+to)/2, y+16, inkOn(i), html.EscapeString(bar.Label))
		}
	}
}

// roundTime returns a time as people read it.
func roundTime(t time.Duration) time.Duration { return t.Round(time.Microsecond) }

// inkOn is white on dark bars.
func inkOn(i int) string {
	c := color.GrayModel.Convert(SeriesColor(i))
	if gray, _, _, _ := c.RGBA(); gray > 0x8000 {
		return "black"
	}
	return "white"
}

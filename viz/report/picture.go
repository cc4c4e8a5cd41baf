package report

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/viz"
)

// causeColors tell causes apart, for the colour-blind too (Okabe and Ito).
var causeColors = map[viz.Cause]string{
	viz.Late: "#d55e00", viz.Wire: "#0072b2", viz.Memory: "#56b4e9", viz.Copy: "#009e73", viz.Reduce: "#cc79a7", viz.CPU: "#999999",
}

// kindColors are those of steps; others are as copies.
var kindColors = map[string]string{"send": "#0072b2", "recv": "#56b4e9", "await": "#bbbbbb", "notify": "#888888", "reduce": "#cc79a7"}

// colorMark is a small square.
func colorMark(color string) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg width="12" height="12"><rect width="12" height="12" fill="%s"/></svg>`, color))
}

// shareBar draws the shares of causes.
func shareBar(a *viz.Account) template.HTML {
	const width, height = 400, 16
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="shares" width="%d" height="%d">`, width, height)
	x := 0
	for i, share := range a.Percents() {
		cause := viz.Causes()[i]
		fmt.Fprintf(&b, `<rect x="%d" width="%d" height="%d" fill="%s"><title>%s %d%%</title></rect>`, x, share*width/100, height, causeColors[cause], cause, share)
		x += share * width / 100
	}
	return template.HTML(b.String() + "</svg>")
}

// Sizes of the chart of times, pixels: of the plot, and of a size's place in it at least.
const (
	chartHeight = 300
	chartWidth  = 700
	chartPlace  = 60
	chartLeft   = 70
	chartTop    = 60
)

// plotTimes draws the times of calls by size, a series for each collective called with several sizes. Without any
// there is no chart: the table has the times. Whiskers reach to the time of 95 % of the calls.
func plotTimes(rows []callRow) template.HTML {
	sizesOf := map[string][]int64{}
	for _, r := range rows {
		if coll := collectiveOf(r.Request); r.Half > 0 && !slices.Contains(sizesOf[coll], r.Bytes) {
			sizesOf[coll] = append(sizesOf[coll], r.Bytes)
		}
	}
	maps.DeleteFunc(sizesOf, func(_ string, sizes []int64) bool { return len(sizes) == 1 })
	if len(sizesOf) == 0 {
		return ""
	}
	first, last := math.MaxInt, math.MinInt // the ends of the axis, powers of ten
	for _, r := range rows {
		if r.Half > 0 && sizesOf[collectiveOf(r.Request)] != nil {
			first, last = min(first, int(math.Floor(math.Log10(r.Half)))), max(last, int(math.Floor(math.Log10(r.Most)))+1)
		}
	}
	sizes, colls := slices.Concat(slices.Collect(maps.Values(sizesOf))...), slices.Sorted(maps.Keys(sizesOf))
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	width := max(chartWidth, chartPlace*len(sizes))
	place := float64(width) / float64(len(sizes))
	y := func(v float64) float64 {
		return chartTop + chartHeight*(float64(last)-math.Log10(v))/float64(last-first)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="times" width="%d" height="%d" font-size="11">`, chartLeft+width, chartTop+chartHeight+40)
	fmt.Fprintf(&b, `<text x="0" y="14" font-size="14">Time of calls by size of the message</text><text x="0" y="%d">µs</text><text x="%d" y="%d" text-anchor="end">bytes</text>`,
		chartTop+4, chartLeft+width, chartTop+chartHeight+34)
	drawDecades(&b, first, last, width, y)
	for i, n := range sizes {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`, chartLeft+place*(float64(i)+0.5), chartTop+chartHeight+18, n)
	}
	named := chartLeft
	for k, coll := range colls {
		color := viz.SeriesHTML(k)
		fmt.Fprintf(&b, `<rect x="%d" y="26" width="12" height="12" fill="%s"/><text x="%d" y="36">%s</text>`, named, color, named+16, template.HTMLEscapeString(coll))
		named += 32 + 7*utf8.RuneCountInString(coll)
		shift := 0.4 * place * ((float64(k)+0.5)/float64(len(colls)) - 0.5) // whiskers stand side by side
		for i, n := range sizes {
			at := slices.IndexFunc(rows, func(r callRow) bool { return r.Bytes == n && r.Half > 0 && collectiveOf(r.Request) == coll })
			if at < 0 {
				continue
			}
			r, x := &rows[at], chartLeft+place*(float64(i)+0.5)+shift
			fmt.Fprintf(&b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/><circle cx="%.1f" cy="%.1f" r="4" fill="%s"><title>%s of %d bytes: %.1f µs, 95 %%: %.1f µs</title></circle>`,
				x, y(r.Half), x, y(r.Most), color, x, y(r.Half), color, template.HTMLEscapeString(coll), n, r.Half, r.Most)
		}
	}
	return template.HTML(b.String() + "</svg>")
}

// drawDecades draws lines at powers of ten, and of few decades at 2 and 5 in between.
func drawDecades(b *strings.Builder, first, last, width int, y func(float64) float64) {
	digits := []float64{1, 2, 5}
	if last-first > 2 {
		digits = digits[:1]
	}
	for power := first; power <= last; power++ {
		for _, digit := range digits {
			if at := digit * math.Pow10(power); power < last || digit == 1 {
				fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#cccccc"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`,
					chartLeft, y(at), chartLeft+width, y(at), chartLeft-6, y(at)+4, strconv.FormatFloat(at, 'f', -1, 64))
			}
		}
	}
}

// mostColumns bounds the columns of the map of late ranks, mostRows its rows.
const (
	mostColumns = 100
	mostRows    = 256
)

// lateMap draws how much of calls had passed before ranks came to them: ranks from top to bottom,
// calls from left to right, several of them in a column if there are many.
func lateMap(j *viz.JobTrace) template.HTML {
	ranks, columns := min(len(j.Nodes), mostRows), min(len(j.Calls), mostColumns)
	if ranks*columns == 0 {
		return ""
	}
	const left, cell, high = 50, 9, 9
	sums, counts := make([]float64, ranks*columns), make([]int, ranks*columns)
	for i := range j.Calls {
		c := &j.Calls[i]
		for n, r := range c.Members {
			if int(r) < ranks {
				at := int(r)*columns + i*columns/len(j.Calls)
				sums[at] += float64(c.Begins[n]-c.Begin()) / float64(max(1, c.Length()))
				counts[at]++
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="late" width="%d" height="%d" font-size="9">`, left+columns*cell, ranks*high)
	for r := range ranks {
		fmt.Fprintf(&b, `<text x="0" y="%d">rank %d</text>`, r*high+8, r)
		for k := range columns {
			at := r*columns + k
			if counts[at] == 0 {
				continue
			}
			share := sums[at] / float64(counts[at])
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="#d55e00" fill-opacity="%.2f"><title>rank %d comes after %.0f%% of the call</title></rect>`,
				left+k*cell, r*high, cell-1, high-1, 0.04+0.96*min(1, share), r, 100*share)
		}
	}
	return template.HTML(b.String() + "</svg>")
}

// Sizes of a timeline, pixels. mostSteps bounds the drawn steps of a call.
const (
	timelineWidth = 1000
	timelineLeft  = 60
	rowHeight     = 22
	mostSteps     = 3000
)

// timeline draws one call: a row for each rank, a bar for each step, lines between the ends of
// messages, and the critical path in black.
func timeline(j *viz.JobTrace, c *viz.TracedCall, path []viz.PathPiece) template.HTML {
	ranks := min(len(c.Members), mostRows)
	scale := float64(timelineWidth-timelineLeft) / float64(max(1, c.Length()))
	x := func(t int64) float64 { return timelineLeft + float64(t-c.Begin())*scale }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="timeline" width="%d" height="%d" font-size="11">`, timelineWidth, ranks*rowHeight+20)
	for n := range ranks {
		y := n * rowHeight
		fmt.Fprintf(&b, `<text x="0" y="%d">r%d %s</text>`, y+14, c.Members[n], template.HTMLEscapeString(shortName(j.Nodes[c.Members[n]])))
		fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#f2f2f2"/>`, x(c.Begins[n]), y, x(c.Ends[n])-x(c.Begins[n]), rowHeight-3)
	}
	if len(c.Events) <= mostSteps {
		drawSteps(&b, c, x, ranks)
		drawMessages(&b, c, x, ranks)
	}
	for _, p := range path {
		if int(p.Rank) < ranks {
			fmt.Fprintf(&b, `<rect class="path" x="%.1f" y="%d" width="%.1f" height="3"><title>%s: %s, %v</title></rect>`, x(p.Begin), int(p.Rank)*rowHeight+rowHeight-5,
				max(0.5, x(p.End)-x(p.Begin)), template.HTMLEscapeString(p.Label), p.Cause, time.Duration(p.End-p.Begin))
		}
	}
	fmt.Fprintf(&b, `<text x="%d" y="%[2]d">0</text><text x="%[3]d" y="%[2]d" text-anchor="end">%[4]v</text>`, timelineLeft, ranks*rowHeight+14, timelineWidth, c.Length())
	return template.HTML(b.String() + "</svg>")
}

// shortName fits beside a row.
func shortName(node string) string {
	if r := []rune(node); len(r) > 6 {
		return string(r[:5]) + "…"
	}
	return node
}

// drawSteps draws a bar for each step.
func drawSteps(b *strings.Builder, c *viz.TracedCall, x func(int64) float64, ranks int) {
	for i := range c.Events {
		e := &c.Events[i]
		if e.Step == trace.WholeRun || int(e.Rank) >= ranks {
			continue
		}
		_, label, kind, _, _ := e.Source.Describe(e.Step)
		color := kindColors[kind]
		if color == "" {
			color = causeColors[viz.Copy]
		}
		top, high := 1, rowHeight-7
		if kind == "recv" || kind == "await" { // they wait while others run
			top, high = 9, rowHeight-15
		}
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s, %v</title></rect>`, x(e.Begin), int(e.Rank)*rowHeight+top,
			max(0.5, x(e.End)-x(e.Begin)), high, color, template.HTMLEscapeString(label), time.Duration(e.End-e.Begin))
	}
}

// drawMessages draws a line for each message.
func drawMessages(b *strings.Builder, c *viz.TracedCall, x func(int64) float64, ranks int) {
	sent := map[viz.TracedMessage]int64{}
	for i := range c.Events {
		if m, outgoing, ok := viz.MessageOf(&c.Events[i]); ok && outgoing {
			sent[m] = c.Events[i].Begin
		}
	}
	for i := range c.Events {
		m, outgoing, ok := viz.MessageOf(&c.Events[i])
		if at, isSent := sent[m]; ok && !outgoing && isSent && int(max(m.From, m.To)) < ranks {
			fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#444" stroke-opacity="0.35"/>`,
				x(at), int(m.From)*rowHeight+rowHeight/2, x(c.Events[i].End), int(m.To)*rowHeight+rowHeight/2)
		}
	}
}

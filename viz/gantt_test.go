package viz_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/viz"
)

// rects are the rectangles of a picture: x, width and colour of each.
func rects(t *testing.T, svg []byte) (all [][3]string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("no XML: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			var r [3]string
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "x":
					r[0] = a.Value
				case "width":
					r[1] = a.Value
				case "fill":
					r[2] = a.Value
				}
			}
			all = append(all, r)
		}
	}
}

// Bars lie where their times are, in the colours of their kinds, and labels show where they fit.
func TestGantt(t *testing.T) {
	const ms = time.Millisecond
	g := viz.Gantt{Title: "a < b", Rows: []viz.GanttRow{
		{"computing", []viz.GanttBar{{"forward", "layer 0", 0, 50 * ms}, {"backward", "layer 0, too long to show", 50 * ms, 60 * ms}}},
		{"sums", []viz.GanttBar{{"bucket", "0", 60 * ms, 100 * ms}}},
	}}
	svg, err := g.SVG()
	if err != nil {
		t.Fatal(err)
	}
	all := rects(t, svg)
	if len(all) != 1+3+3 { // the ground, the legend and the bars
		t.Fatalf("%d rectangles: %s", len(all), svg)
	}
	bars, legend := all[4:], all[1:4]
	for i, want := range [][2]string{{"154.0", "400.0"}, {"554.0", "80.0"}, {"634.0", "320.0"}} {
		if bars[i][0] != want[0] || bars[i][1] != want[1] || bars[i][2] != legend[i][2] {
			t.Errorf("bar %d is %v; want %v in the colour %s", i, bars[i], want, legend[i][2])
		}
	}
	for text, shown := range map[string]bool{">a &lt; b<": true, ">layer 0<": true, ">layer 0, too long to show<": false, ">100 ms<": true, "backward layer 0, too long to show: 10ms, from 50ms": true} {
		if strings.Contains(string(svg), text) != shown {
			t.Errorf("%q shows: %v; want %v", text, !shown, shown)
		}
	}
	if again, _ := g.SVG(); !bytes.Equal(svg, again) {
		t.Error("the same chart has other bytes")
	}
}

// Lines are at round times, neither few nor many.
func TestGanttTicks(t *testing.T) {
	for end, want := range map[time.Duration][]string{
		1100 * time.Microsecond: {"0", "0.2", "0.4", "0.6", "0.8", "1"},
		3 * time.Millisecond:    {"0", "0.5", "1", "1.5", "2", "2.5", "3"},
		1900 * time.Millisecond: {"0", "200", "400", "600", "800", "1000", "1200", "1400", "1600", "1800"},
		4 * time.Hour:           {"0", "2000000", "4000000", "6000000", "8000000", "10000000", "12000000", "14000000"},
		7:                       {"0", "0.000001", "0.000002", "0.000003", "0.000004", "0.000005", "0.000006", "0.000007"},
	} {
		svg, err := viz.Gantt{Rows: []viz.GanttRow{{"r", []viz.GanttBar{{End: end}}}}}.SVG()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range regexp.MustCompile(`>([0-9.]+) ms<`).FindAllStringSubmatch(string(svg), -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: ticks %v; want %v", end, got, want)
		}
	}
}

// What can't be drawn is an error.
func TestGanttMisuse(t *testing.T) {
	for want, bars := range map[string][]viz.GanttBar{
		"nothing to draw": nil, "from -1ns": {{Begin: -1, End: 1}}, "from 2ns to 1ns": {{Begin: 2, End: 1}},
	} {
		if _, err := (viz.Gantt{Title: "t", Rows: []viz.GanttRow{{"r", bars}}}).SVG(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

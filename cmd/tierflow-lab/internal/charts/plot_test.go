package charts_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow-lab/internal/charts"
)

// A plot is XML that names its series, the same each time, and leaves out what
// can't be drawn.
func TestPlot(t *testing.T) {
	p := charts.Plot{
		Title: "a title", X: "size", Y: "µs", LogY: true, Names: []string{"1KiB", "4KiB", "16KiB"},
		Series: []charts.Series{
			{Name: "han", Values: []float64{10, 20, 35}},
			{Name: "flat", Values: []float64{5, math.NaN(), 0}},
			{Name: "nothing", Values: []float64{math.NaN()}},
		},
	}
	for _, p.Style = range []charts.Style{charts.Points, charts.Lines, charts.Bars} {
		drawing, err := p.SVG()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := p.SVG(); err != nil || !bytes.Equal(drawing, again) {
			t.Errorf("drawn twice it differs (%v)", err)
		}
		for _, want := range []string{"a title", ">han<", ">flat<", ">4KiB<"} {
			if !strings.Contains(string(drawing), want) {
				t.Errorf("the drawing has no %q", want)
			}
		}
		if strings.Contains(string(drawing), "nothing") {
			t.Error("a series without values is in the legend")
		}
		d := xml.NewDecoder(bytes.NewReader(drawing))
		for err = nil; err == nil; _, err = d.Token() {
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("no XML: %v", err)
		}
	}
	if _, err := (charts.Plot{Title: "empty", Series: p.Series[2:]}).SVG(); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("a plot of nothing gives %v", err)
	}
}

// Panels share a legend, in which a name has one entry, and have titles of their own.
// Whiskers, even ends that a logarithmic axis doesn't have, are drawn.
func TestPanels(t *testing.T) {
	one := charts.Plot{
		Title: "left", X: "root", Y: "µs", LogY: true, Style: charts.Lines, First: 100, Step: 50,
		Series: []charts.Series{
			{Name: "han", Values: []float64{10, 20, 1234567}, Low: []float64{-1, 15, math.NaN()}, High: []float64{11, 30, 2e6}},
			{Name: "flat", Values: []float64{40, 50, 60}},
		},
	}
	other := charts.Plot{Title: "right", Style: charts.Bars, Names: []string{"a rather long name", "another such name", "and one more of them", "and the very last"}, Series: one.Series[:1]}
	drawing, err := charts.Panels{Title: "both", Plots: []charts.Plot{one, other}}.SVG()
	if err != nil {
		t.Fatal(err)
	}
	text := string(drawing)
	for want, count := range map[string]int{">both<": 1, ">left<": 1, ">right<": 1, ">han<": 1, ">flat<": 1, ">150<": 1, ">1000000<": -1, "rotate(45": -1} {
		if got := strings.Count(text, want); got != count && (count >= 0 || got == 0) {
			t.Errorf("%q occurs %d times, want %d (-1: some)", want, got, count)
		}
	}
	for _, empty := range []charts.Panels{{Title: "none"}, {Plots: []charts.Plot{one, {Title: "bare"}}}} {
		if _, err := empty.SVG(); err == nil || !strings.Contains(err.Error(), "nothing to draw") {
			t.Errorf("%s: %v", empty.Title, err)
		}
	}
}

package viz_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/viz"
)

// A plot is XML that names its series, the same each time, and leaves out what
// can't be drawn.
func TestPlot(t *testing.T) {
	p := viz.Plot{
		Title: "a title", X: "size", Y: "µs", LogY: true, Names: []string{"1KiB", "4KiB", "16KiB"},
		Series: []viz.Series{
			{Name: "han", Values: []float64{10, 20, 35}},
			{Name: "flat", Values: []float64{5, math.NaN(), 0}},
			{Name: "nothing", Values: []float64{math.NaN()}},
		},
	}
	for _, p.Style = range []viz.Style{viz.Points, viz.Lines, viz.Bars} {
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
	if _, err := (viz.Plot{Title: "empty", Series: p.Series[2:]}).SVG(); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("a plot of nothing gives %v", err)
	}
}

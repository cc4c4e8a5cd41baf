package costs_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tierflow/tierflow/costs"
)

func TestSummarize(t *testing.T) {
	close := cmpopts.EquateApprox(0, 1e-3)
	for _, test := range []struct {
		samples []float64
		want    costs.Summary
	}{
		{nil, costs.Summary{}},
		{[]float64{7}, costs.Summary{N: 1, Mean: 7, Min: 7, P50: 7, P95: 7, Max: 7}},
		// Student's t for 4 degrees of freedom is 2.776; the deviation is √2.5.
		{[]float64{5, 3, 1, 4, 2}, costs.Summary{N: 5, Mean: 3, Half: 2.7764 * math.Sqrt(2.5/5), Min: 1, P50: 3, P95: 5, Max: 5}},
		{[]float64{10, 10, 11, 11, 12, 12, 90}, costs.Summary{N: 7, Outliers: 1, Mean: 22.2857, Half: 27.6255, Min: 10, P50: 11, P95: 90, Max: 90}},
		{[]float64{0.1, 0.1, 0.1}, costs.Summary{N: 3, Mean: 0.1, Min: 0.1, P50: 0.1, P95: 0.1, Max: 0.1}},
	} {
		if diff := cmp.Diff(test.want, costs.Summarize(test.samples), close); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.samples, diff)
		}
	}
}

func TestStop(t *testing.T) {
	steady, wild := []float64{100, 101, 99, 100, 101, 100}, []float64{1, 100, 3, 400, 5, 60}
	for _, test := range []struct {
		name    string
		stop    costs.Stop
		samples []float64
		spent   time.Duration
		want    bool
	}{
		{"no samples", costs.Stop{}, nil, time.Hour, false},
		{"too few, however long they took", costs.Stop{}, steady[:4], time.Hour, false},
		{"steady", costs.Stop{}, steady, 0, true},
		{"wild", costs.Stop{}, wild, 0, false},
		{"wild, but enough of them", costs.Stop{Most: 6}, wild, 0, true},
		{"wild, but the time is up", costs.Stop{}, wild, time.Second, true},
		{"wild, within a wide interval", costs.Stop{Rel: 5}, wild, 0, true},
		{"one is enough", costs.Stop{Least: 1, Most: 1}, wild[:1], 0, true},
		{"one says nothing of its interval", costs.Stop{Least: 1}, wild[:1], 0, false},
	} {
		if got := test.stop.Done(test.samples, test.spent); got != test.want {
			t.Errorf("%s: done is %v", test.name, got)
		}
	}
}

func TestSettle(t *testing.T) {
	for _, test := range []struct {
		name    string
		ns      []float64
		from    int
		settled bool
	}{
		{"at once", []float64{100, 101, 99, 100}, 0, true},
		{"after two", []float64{300, 200, 100, 101, 99, 100, 102}, 2, true},
		{"one disturbed", []float64{100, 101, 900, 100, 102, 99}, 0, true},
		{"rising", []float64{1, 2, 4, 8, 16, 32, 64, 128}, 4, false},
		{"two levels", []float64{100, 200, 100, 200, 100, 200}, 3, true},
		{"too few", []float64{100, 100}, 1, false},
		{"none", nil, 0, false},
	} {
		if from, settled := costs.Settle(test.ns); from != test.from || settled != test.settled {
			t.Errorf("%s: from %d, settled %v; want %d, %v", test.name, from, settled, test.from, test.settled)
		}
	}
}

func TestPipeline(t *testing.T) {
	// Segments complete in pairs, 20 ns for both.
	done := []float64{50, 50, 70, 70, 90, 90, 110, 110, 130, 130}
	p := costs.Pipeline{Segments: 10, Phases: 2, Leaders: []costs.Completion{
		costs.NewCompletion(55, done, 145, 2),
		costs.NewCompletion(10, []float64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, 90, 2),
	}}
	want := costs.Completion{Alone: 55, Fill: 50, Stable: 10, Drain: 15, Done: done}
	if diff := cmp.Diff(want, p.Leaders[0]); diff != "" {
		t.Errorf("completion (-want +got):\n%s", diff)
	}
	for u, want := range map[int64]float64{1: 55, 2: 65, 4: 85, 10: 145, 11: 155, 110: 1145} {
		if got, err := p.NS(u); err != nil || got != want {
			t.Errorf("%d segments: %v, %v; want %v", u, got, err, want)
		}
	}
	if _, err := p.NS(0); err == nil {
		t.Error("no segments take no time, without complaint")
	}
	p.Segments = 1
	if _, err := p.NS(2); err == nil {
		t.Error("two segments are predicted from one")
	}
}

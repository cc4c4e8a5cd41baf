package stats_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tierflow/tierflow/costs"
	"github.com/tierflow/tierflow/costs/stats"
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
		if diff := cmp.Diff(test.want, stats.Summarize(test.samples), close); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.samples, diff)
		}
	}
}

func TestStop(t *testing.T) {
	steady, wild := []float64{100, 101, 99, 100, 101, 100}, []float64{1, 100, 3, 400, 5, 60}
	for _, test := range []struct {
		name    string
		stop    stats.Stop
		samples []float64
		spent   time.Duration
		want    bool
	}{
		{"no samples", stats.Stop{}, nil, time.Hour, false},
		{"too few, however long they took", stats.Stop{}, steady[:4], time.Hour, false},
		{"steady", stats.Stop{}, steady, 0, true},
		{"wild", stats.Stop{}, wild, 0, false},
		{"wild, but enough of them", stats.Stop{Most: 6}, wild, 0, true},
		{"wild, but the time is up", stats.Stop{}, wild, time.Second, true},
		{"wild, within a wide interval", stats.Stop{Rel: 5}, wild, 0, true},
		{"one is enough", stats.Stop{Least: 1, Most: 1}, wild[:1], 0, true},
		{"one says nothing of its interval", stats.Stop{Least: 1}, wild[:1], 0, false},
	} {
		if got := test.stop.Done(test.samples, test.spent); got != test.want {
			t.Errorf("%s: done is %v", test.name, got)
		}
	}
}

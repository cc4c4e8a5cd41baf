package costs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/costs"
)

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

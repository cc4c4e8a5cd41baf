package labkit

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/tasks"
)

func TestRankCorrelation(t *testing.T) {
	for _, test := range []struct {
		a, b       []float64
		tied, want float64
	}{
		{[]float64{1, 2, 3, 40}, []float64{10, 11, 12, 13}, 1, 1},
		{[]float64{1, 2, 3}, []float64{9, 8, 1}, 1, -1},
		{[]float64{1, 2, 2, 3}, []float64{1, 3, 2, 4}, 1, 0.9486832980505138}, // ties share places
		{[]float64{5}, []float64{6}, 1, 1},
		{nil, nil, 1, 1},
		{[]float64{4, 4, 4}, []float64{1, 2, 3}, 1, 1},
		{[]float64{100, 101, 102}, []float64{3, 2, 1}, 1.05, 1}, // all of a list are tied
		{[]float64{100, 101, 200}, []float64{2, 1, 3}, 1.05, 0.8660254037844387},
	} {
		if got := RankCorrelation(test.a, test.b, test.tied); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%v and %v, tied within %v: %v, want %v", test.a, test.b, test.tied, got, test.want)
		}
	}
}

// Places don't depend on the order of values, add up to those of a list without ties, and follow
// the values.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1, 3), 1, 20).Draw(t, "values")
		tied := rapid.SampledFrom([]float64{1, 1.05, 2}).Draw(t, "tied")
		places := placesOf(values, tied)
		sum := 0.0
		for i, p := range places {
			sum += p
			for k, q := range places {
				if values[i] < values[k] && p > q || values[i] == values[k] && p != q {
					t.Fatalf("%v has place %v, and %v has %v", values[i], p, values[k], q)
				}
			}
		}
		if n := float64(len(values)); math.Abs(sum-n*(n-1)/2) > 1e-9 {
			t.Fatalf("places %v add up to %v", places, sum)
		}
		slices.Reverse(values)
		again := placesOf(values, tied)
		slices.Reverse(again)
		if !slices.Equal(places, again) {
			t.Fatalf("places %v, of the list reversed %v", places, again)
		}
	})
}

func TestGeometricMean(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{0, 0}, 0}, {[]float64{2, 0, 8}, 4}, {[]float64{math.NaN(), 3}, 3}, {[]float64{0.5, 2}, 1}} {
		if got := GeometricMean(test.values); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", test.values, got, test.want)
		}
	}
}

func TestRatios(t *testing.T) {
	for _, test := range []struct{ series, base, want []float64 }{
		{nil, []float64{1}, nil},
		{[]float64{2, 3}, []float64{4, 6, 8}, []float64{.5, .5}},
		{[]float64{2, 3, 4}, []float64{1, 0}, []float64{2}},
	} {
		if got := Ratios(test.series, test.base); !slices.Equal(got, test.want) {
			t.Errorf("%v by %v: %v, want %v", test.series, test.base, got, test.want)
		}
	}
}

// Requests are of floats where sizes allow it, and reductions add.
func TestRequest(t *testing.T) {
	for _, test := range []struct {
		coll  tasks.Collective
		bytes int64
		of    tasks.Datatype
	}{{tasks.Bcast, 8, tasks.Float32}, {tasks.Bcast, 7, tasks.Uint8}, {tasks.Allreduce, 8, tasks.Float32}, {tasks.Barrier, 0, 0}} {
		r := Request(test.coll, test.bytes)
		if r.Bytes() != test.bytes || r.Type != test.of || r.Reduces() != (r.Op == tasks.Sum) || r.Validate(4) != nil {
			t.Errorf("%v of %d bytes is %+v, %v", test.coll, test.bytes, r, r.Validate(4))
		}
	}
	if r := Request(tasks.Barrier, 64); r.Validate(4) != nil {
		t.Errorf("a barrier has the elements %+v", r)
	}
}

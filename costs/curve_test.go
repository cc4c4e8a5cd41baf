package costs_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tierflow/tierflow/costs"
)

// A single size tells what fewer bytes take at the most, and what more bytes take if all
// its time was for bytes.
func TestCurveOfOneSize(t *testing.T) {
	book := &costs.Book{}
	add := func(bytes int64, ns float64) {
		book.AddPipeline(costs.Key{Segment: bytes}, costs.Pipeline{Leaders: []costs.Completion{{Alone: ns}}})
	}
	is := func(bytes int64, want float64) {
		t.Helper()
		if ns, known := book.Curve(costs.Key{}).Alone(bytes); !known || ns != want {
			t.Errorf("%d bytes take %v ns, known %t; want %v", bytes, ns, known, want)
		}
	}
	add(1000, 50)
	is(100, 50)
	is(1000, 50)
	is(8000, 400)
	add(2000, 60)
	is(8000, 120)
}

// curveOf returns the curve of measurements of two segments: by bytes, the time of one and that of both.
func curveOf(all map[int64][2]float64) *costs.Curve {
	book := &costs.Book{}
	for bytes, ns := range all {
		book.AddPipeline(costs.Key{Segment: bytes}, costs.Pipeline{
			Segments: 2, Leaders: []costs.Completion{{Alone: ns[0], Done: []float64{ns[0], ns[1]}}},
		})
	}
	return book.Curve(costs.Key{Segment: 77})
}

// A curve knows its sizes in order, and those around any other.
func TestSizesOfACurve(t *testing.T) {
	c := curveOf(map[int64][2]float64{4000: {40, 60}, 1000: {10, 20}, 2000: {20, 30}})
	if got := c.Sizes(); !slices.Equal(got, []int64{1000, 2000, 4000}) {
		t.Errorf("sizes %v", got)
	}
	for bytes, want := range map[int64][2]int64{1: {0, 1000}, 1000: {1000, 1000}, 1001: {1000, 2000}, 3000: {2000, 4000}, 4001: {4000, 0}} {
		if below, above := c.Around(bytes); [2]int64{below, above} != want {
			t.Errorf("around %d: %d and %d, want %v", bytes, below, above, want)
		}
	}
	if below, above := curveOf(nil).Around(5); below != 0 || above != 0 || len(curveOf(nil).Sizes()) != 0 {
		t.Errorf("an empty curve has %d and %d", below, above)
	}
	if _, known := curveOf(nil).Alone(5); known {
		t.Error("an empty curve knows a time")
	}
}

// Between two sizes a curve is the line through them, and beyond the last the one through the last
// two. It never falls below half of the smaller one.
func TestLinesOfACurve(t *testing.T) {
	c := curveOf(map[int64][2]float64{1000: {10, 20}, 2000: {30, 40}, 4000: {20, 60}})
	for bytes, want := range map[int64]float64{500: 10, 1000: 10, 1250: 15, 2000: 30, 3000: 25, 4000: 20, 6000: 10, 100_000: 10} {
		if got, known := c.Alone(bytes); !known || math.Abs(got-want) > 1e-9 {
			t.Errorf("%d bytes take %v, known %t; want %v", bytes, got, known, want)
		}
	}
}

// A point off the line of its neighbours bends the curve; those at the ends don't.
func TestBend(t *testing.T) {
	straight := curveOf(map[int64][2]float64{1000: {10, 20}, 2000: {20, 40}, 3000: {30, 60}})
	bent := curveOf(map[int64][2]float64{1000: {10, 20}, 2000: {20, 80}, 3000: {30, 60}})
	for _, test := range []struct {
		c     *costs.Curve
		bytes int64
		want  float64
	}{{straight, 2000, 0}, {straight, 1500, 0}, {bent, 1000, 0}, {bent, 3000, 0}, {bent, 2000, 0.5}} { // 20 each on the line, 40 measured
		if got := test.c.Bend(test.bytes); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%d bytes bend the curve by %v, want %v", test.bytes, got, test.want)
		}
	}
}

// The pace is the time of all segments but the first, and no less than half of their mean.
func TestPaceOfACurve(t *testing.T) {
	c := curveOf(map[int64][2]float64{1000: {10, 24}})
	for _, test := range []struct {
		bytes      int64
		fill, want float64
	}{{1000, 10, 14}, {1000, 0, 24}, {1000, 23, 6}, {1000, 99, 6}, {999, 10, 0}} {
		if got := c.Pace(test.bytes, test.fill); got != test.want {
			t.Errorf("%d bytes after %v: %v, want %v", test.bytes, test.fill, got, test.want)
		}
	}
}

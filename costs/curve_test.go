package costs_test

import (
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

package executor

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A caller's operation gets whole elements, of any size. The pace stays in its bounds and follows the
// operation: down at once, and up again.
func TestPace(t *testing.T) {
	for _, element := range []int64{1, 12, 16, 24, 1000, 3*chunk + 4} {
		r := &Run{running: running{pace: firstPace, element: element}}
		for range 10_000 {
			left := element * (1 + rand.Int64N(1+2*r.pace/element))
			n := r.piece(left)
			if n < element || n > left || n%element != 0 || n > max(r.pace, element) {
				t.Fatalf("%d of %d bytes, at a pace of %d, by elements of %d", n, left, r.pace, element)
			}
			r.keepPace(n, time.Duration(rand.Int64N(int64(time.Second))))
			if r.pace < slowestPace || r.pace > chunk {
				t.Fatalf("a pace of %d bytes", r.pace)
			}
		}
		r.pace = chunk
		r.keepPace(chunk, time.Duration(chunk)*time.Millisecond)
		if r.pace != slowestPace {
			t.Errorf("a very slow operation goes on with %d bytes at a time", r.pace)
		}
		for range 20 {
			r.keepPace(r.piece(8*max(chunk, element)/element*element), time.Microsecond)
		}
		if r.pace != chunk {
			t.Errorf("a fast operation on %d bytes goes on with %d at a time", element, r.pace)
		}
	}
}

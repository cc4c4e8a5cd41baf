package executor

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The pace is always a number of whole elements within its bounds, and follows the
// operation: down at once, and up again.
func TestPace(t *testing.T) {
	r := &Run{running: running{pace: firstPace}}
	for range 10_000 {
		n := r.pace
		if rand.IntN(3) == 0 { // the end of a span
			n = 16 * (1 + rand.Int64N(r.pace/16))
		}
		r.keepPace(n, time.Duration(rand.Int64N(int64(time.Second))))
		if r.pace < slowestPace || r.pace > chunk || r.pace%slowestPace != 0 {
			t.Fatalf("a pace of %d bytes", r.pace)
		}
	}
	r.pace = chunk
	r.keepPace(chunk, time.Duration(chunk)*time.Millisecond)
	if r.pace != slowestPace {
		t.Errorf("a very slow operation goes on with %d bytes at a time", r.pace)
	}
	for range 20 {
		r.keepPace(r.pace, time.Microsecond)
	}
	if r.pace != chunk {
		t.Errorf("a fast operation goes on with %d bytes at a time", r.pace)
	}
}

package sim

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Events come out by time, and in the order in which they were made where times are
// equal, even when their numbers wrap around.
func TestQueueOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	q := queue{seq: math.MaxUint32 - 500}
	var slow []event // the twin: sorted by insertion
	for range 20_000 {
		if len(slow) == 0 || random.IntN(100) < 55 {
			at := Time(random.IntN(50))
			e := event{at: at, seq: q.seq, what: wake<<indexBits | 7}
			q.push(at, wake, 7)
			i := len(slow)
			for i > 0 && slow[i-1].at > at {
				i--
			}
			slow = append(slow[:i], append([]event{e}, slow[i:]...)...)
			continue
		}
		if got := q.pop(); got != slow[0] {
			t.Fatalf("popped %+v, want %+v", got, slow[0])
		}
		slow = slow[1:]
	}
}

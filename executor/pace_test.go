package executor

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tierflow/tierflow/dag"
	"github.com/tierflow/tierflow/submodules"
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

// Only a caller's operation begins with a small piece.
func TestFirstPiece(t *testing.T) {
	for user, want := range map[bool]int{true: firstPace, false: 64 << 10} {
		w := newMute(t)
		run := startAlone(t, w, "shape=flat,fs=64KiB,w=2,i=adapt/binomial,s=adapt/binomial")
		run.comm.e.mu.Lock()
		id := slices.IndexFunc(run.steps, func(s submodules.Step) bool { return s.Kind == submodules.ReduceStep })
		first := 0
		run.b.User, run.pace, run.element = user, firstPace, 1
		func() {
			defer func() { recover() }() // the step isn't ready, and must not end
			run.doInChunks(dag.ID(id), &run.steps[id], func(dst, _, _ []byte) {
				first = len(dst)
				panic("one piece is enough")
			})
		}()
		if first != want {
			t.Errorf("caller's operation %v: the first piece has %d bytes, want %d", user, first, want)
		}
		run.comm.e.unlock()
		w.Close()
	}
}

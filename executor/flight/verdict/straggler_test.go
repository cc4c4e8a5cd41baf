package verdict_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/flight/verdict"
)

// drawnWaits are the waits of a job whose ranks meet in calls again and again.
type drawnWaits struct {
	nodes  []string
	waited []time.Duration
	slow   []int
	// clear: the others wait for much of the time, and the slow ones for little of what any of them waits for.
	clear bool
}

// drawWaits draws a job with so many slow ranks. In each period of the slowest rank's work and a call all others
// wait, but for their own work, and what leaders do for their nodes.
func drawWaits(rnd *rand.Rand, slow int) *drawnWaits {
	w := &drawnWaits{}
	nodes, each := 1+rnd.IntN(16), 1+rnd.IntN(8)
	size := max(2, nodes*each)
	for r := range size {
		w.nodes = append(w.nodes, fmt.Sprintf("node%d", min(r/each, nodes-1)))
	}
	for len(w.slow) < min(slow, max(1, (size-1)/2)) {
		if r := rnd.IntN(size); !slices.Contains(w.slow, r) {
			w.slow = append(w.slow, r)
		}
	}
	slices.Sort(w.slow)
	late, call, leaders := 0.1+0.8*rnd.Float64(), 0.3*rnd.Float64(), 0.25*rnd.Float64()
	if len(w.slow) == 0 {
		late, call = 0, 0.9*rnd.Float64()
		if leaders = call * rnd.Float64(); nodes == 1 {
			leaders /= 2 // one rank of one node that works for most of the time does hold up the others
		}
	}
	leads := func(r int) bool { return r == 0 || w.nodes[r] != w.nodes[r-1] }
	least, most := 1., 0.
	for r := range size {
		share := late + call
		if slices.Contains(w.slow, r) {
			share = call
		}
		if leads(r) {
			share -= leaders
		}
		share = max(0, share*(0.95+0.05*rnd.Float64()))
		w.waited = append(w.waited, time.Duration(share*float64(time.Second)))
		if slices.Contains(w.slow, r) {
			most = max(most, share)
		} else {
			least = min(least, share)
		}
	}
	others := func(r int) bool { return leads(r) && !slices.Contains(w.slow, r) }
	w.clear = len(w.slow) > 0 && least > 0.3 && 3*most < least*0.99 && (nodes < 2 || someRank(size, others))
	return w
}

func someRank(size int, is func(r int) bool) bool {
	for r := range size {
		if is(r) {
			return true
		}
	}
	return false
}

// Who holds up a moving job is named if its waits tell it, whatever leaders do besides; and nobody is in a job
// without such a rank.
func TestDrawnStragglers(t *testing.T) {
	found := 0
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		w := drawWaits(rnd, int(seed%3))
		f := verdict.Straggler(w.waited, time.Second, w.nodes)
		switch {
		case f != nil && !slices.Equal(f.Ranks, w.slow):
			t.Errorf("seed %d: %v, but slow are %v; waits %v on %v", seed, f, w.slow, w.waited, w.nodes)
		case f == nil && w.clear:
			t.Errorf("seed %d: nobody is named, but slow are %v; waits %v on %v", seed, w.slow, w.waited, w.nodes)
		case f != nil:
			found++
		}
	}
	if found < 300 {
		t.Errorf("%d slow ranks are named, want 300 or more", found)
	}
}

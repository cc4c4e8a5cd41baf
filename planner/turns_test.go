package planner

import (
	"testing"

	"github.com/tierflow/tierflow/tasks"
)

// Plans are tried in turns. Slow ones are dropped early, first calls don't count, and the plan
// that was thought best stays unless another one is clearly faster.
func TestTurns(t *testing.T) {
	plans := []tasks.Plan{{Shape: tasks.Han}, {Shape: tasks.Flat}, {Shape: tasks.AR}}
	for _, test := range []struct {
		takes  []int64 // ns
		best   tasks.Shape
		tried  int // plans with a time
		slowly int // calls of the last one
	}{
		{[]int64{1000, 900, 5000}, tasks.Flat, 3, trialSure},
		{[]int64{1000, 990, 1200}, tasks.Han, 3, trialCalls},
		{[]int64{60e6, 50e6, 20e6}, tasks.AR, 3, 1},    // the time is over soon: some were called again
		{[]int64{150e6, 30e6, 40e6}, tasks.Flat, 3, 1}, // none was
		{[]int64{300e6, 1, 1}, tasks.Han, 1, 0},
	} {
		turns, spent := newTurns(len(plans)), int64(0)
		for i := turns.next(); i >= 0; i = turns.next() {
			ns := test.takes[i]
			if turns.first[i] == 0 && test.takes[0] < 1e6 {
				ns *= 100 // connects
			}
			spent += ns
			turns.add(i, ns, spent)
		}
		m := turns.result(plans)
		if got, _ := m.Plan(); got.Shape != test.best || len(m.Trials) != test.tried {
			t.Errorf("%v: %+v, want %v of %d", test.takes, m, test.best, test.tried)
		}
		if last := m.Trials[len(m.Trials)-1]; last.Plan.Shape == tasks.AR && test.slowly > 0 && last.Calls != test.slowly {
			t.Errorf("%v: %d calls of the slowest, want %d", test.takes, last.Calls, test.slowly)
		}
	}
}

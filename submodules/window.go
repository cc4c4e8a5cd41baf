package submodules

import "github.com/tierflow/tierflow/dag"

// MostUnderWay is the largest size of a [Window].
const MostUnderWay = 8

// Window is the last steps of a kind. The next one waits for an earlier one, so that at most so
// many are under way: the size, at most [MostUnderWay] and the same in all calls.
type Window struct {
	last [MostUnderWay]dag.ID
	n    int
}

// Before returns the predecessor of the next step; [None] for the first ones.
func (w *Window) Before(size int) dag.ID {
	if w.n < size {
		return None
	}
	return w.last[w.n%size]
}

// Put adds a step.
func (w *Window) Put(size int, step dag.ID) {
	w.last[w.Turn(size)] = step
	w.n++
}

// Turn returns the next step's place among so many, which it shares with the one before.
func (w *Window) Turn(size int) int { return w.n % size }

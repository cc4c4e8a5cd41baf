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

// ShortSend is the longest message that leaves beside others of its rank, bytes. Programs and what prices them
// ask [TakesTurns].
const ShortSend = 64 << 10

// TakesTurns reports whether a rank's messages of n bytes to its children leave one after the other, see [Turns].
func TakesTurns(n int64) bool { return n > ShortSend }

// Turns has a rank's long sends to its children leave one after the other, in the order of a schedule:
// a send comes after [Turns.Before]. At the same time they would share the wire, and all be there
// when the last one is: 256 KiB would take more than six messages' time along a binomial tree of 16, and not
// four. Short ones are independent: a late child holds up its own tree alone. The zero
// value is ready.
type Turns struct{ long Window }

// Before returns the step that the next send waits for; [None] before the first long one.
func (t *Turns) Before() dag.ID { return t.long.Before(1) }

// Put adds a send of n bytes.
func (t *Turns) Put(step dag.ID, n int64) {
	if TakesTurns(n) {
		t.long.Put(1, step)
	}
}

package planner

import "time"

// Change describes the ranks of a successor, see [Comm.Shrink] and [Comm.Grow].
type Change struct {
	Comm   *Comm  // the new communicator
	Lost   []Loss // ranks left out, ascending
	Joined []int  // ranks of the new communicator without one in the old, ascending
	Old    []int  // by rank of the new communicator: its rank in the old one, -1 of a newcomer
	// Decided is when this rank heard of the decision; zero after [Comm.Grow].
	Decided time.Time
}

// Loss is a rank left out.
type Loss struct {
	Rank   int   // of the old communicator
	Err    error // as far as this rank knows; it wraps [ErrClosed] if the rank has left
	Proven bool  // its end was certain when the others agreed; else it may have died all the same, and hears that it is excluded if not
}

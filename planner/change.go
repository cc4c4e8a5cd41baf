package planner

import "time"

// Change is what has become of a communicator's ranks.
type Change struct {
	Lost   []Loss // ranks that don't go on, ascending
	Joined []int  // ranks of the new communicator that weren't in the old one, ascending
	Old    []int  // by rank of the new communicator: its rank in the old one, -1 of one that has joined
	// Decided is when this rank has heard who goes on; zero after [Comm.Grow].
	Decided time.Time
}

// Loss is a rank that doesn't go on.
type Loss struct {
	Rank   int   // of the old communicator
	Err    error // as far as this rank knows; it wraps [ErrClosed] if the rank has left
	Proven bool  // its end is certain; else it was only suspected, and hears that it is excluded
}

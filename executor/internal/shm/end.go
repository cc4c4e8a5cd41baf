package shm

import "sync/atomic"

// End is one rank's end of a link by a ring, for callers that read
// the ring themselves.
type End struct {
	In   Reader
	Dead error          // why the link is of no use any more; nil: it is
	Wake func()         // wakes the peer, which may wait for room
	Away *atomic.Uint32 // 1 while the peer lets others run; nil if it doesn't say
}

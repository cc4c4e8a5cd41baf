package shm

import "sync/atomic"

// End is one rank's end of a link whose messages come by a ring, as far as those that read
// the ring themselves need it.
type End struct {
	In   Reader
	Dead error          // why the link is of no use any more; nil: it is
	Wake func()         // wakes the peer, which may wait for room
	Away *atomic.Uint32 // 1 while the peer lets others run; nil if it doesn't say
}

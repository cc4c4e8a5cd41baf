package wire

import (
	"time"
	"unsafe"

	"github.com/tierflow/tierflow/levels"
)

// Transport carries messages between the engine of one rank and those of the
// others. All methods but Wake are called with the engine's lock held, except
// Park, which is called without it by the one goroutine that drives.
type Transport interface {
	// Post sends m; the payload, small or that of a point-to-point message without
	// credit, has been copied when it returns.
	Post(to levels.Rank, m *Message, payload []byte)
	// Put moves src to the recv that gave the credit in m.Addr, and then m itself; to a
	// Remote rank it may be eager. It reports whether src may be reused already; if not,
	// a later Poll calls Sent with the token.
	Put(to levels.Rank, m *Message, src []byte, token int32) bool
	// Poll hands over what has arrived, in order per sender, and moves on what is
	// on its way out. It reports whether there was anything.
	Poll(s Sink) bool
	// Flush moves on what is on its way out and reports whether something is left.
	Flush(s Sink) bool
	// Yield lets others run between two polls, of which this is the n-th without
	// success. It is called without the lock, by the one goroutine that drives.
	Yield(n int)
	// Arm announces that the engine is about to park. It returns false if
	// something has arrived meanwhile.
	Arm() bool
	// Park blocks until something arrives, Wake is called, done is closed or a
	// Tick has passed since the last: then it returns true.
	Park(done <-chan struct{}) (ticked bool)
	// Wake ends a park, now or the next one. Any goroutine may call it.
	Wake()
	// Forget lets go of the buffers of what has failed: what has not left is dropped, or
	// leaves from a copy if it goes without credit, and what comes is not written anywhere.
	Forget(what Scope, s Sink)
	// Remote reports whether a rank is on another node.
	Remote(to levels.Rank) bool
	// Open reports whether a message to a rank needs no connection that isn't there.
	Open(to levels.Rank) bool
	// Shared allocates n bytes that the ranks of the node can read when they are
	// exposed, and what frees them.
	Shared(n int64) (b []byte, free func(), err error)
	// Lend is Shared for the caller: what it returns stays until it is freed, even when
	// the world is closed.
	Lend(n int64) (b []byte, free func(), err error)
	// Readable reports whether the ranks of the node can read memory at p where it
	// lies; at nil, whether they can wherever it lies.
	Readable(p unsafe.Pointer) bool
	// Holds reports whether n bytes at p, where a rank has exposed memory that this
	// one can address, are all there.
	Holds(from levels.Rank, p unsafe.Pointer, n int64) bool
	// Read copies memory of another process, at an address there, into dst.
	Read(from levels.Rank, address uint64, dst []byte) error
	// Intact reports whether a rank has not left a run on comm since it was of that
	// age.
	Intact(from levels.Rank, comm CommID, age uint64) bool
	// Leave makes this rank's memory older: what it exposed in a run on comm before
	// is not intact.
	Leave(comm CommID)
}

// Sink is the engine as its transport sees it.
type Sink interface {
	// Deliver takes a message; the payload is good until it returns.
	Deliver(from levels.Rank, m *Message, payload []byte)
	// Place is where the bytes of a large payload go, from m.Offset on; nil if
	// nobody wants them any more. The message itself is delivered after the last.
	Place(from levels.Rank, m *Message) []byte
	// Sent says that the bytes of a put have left.
	Sent(token int32)
}

// Tick is how often a rank that waits looks for disagreement and stalls.
const Tick = 100 * time.Millisecond

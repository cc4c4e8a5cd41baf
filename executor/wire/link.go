package wire

import (
	"time"
	"unsafe"

	"github.com/tierflow/tierflow/levels"
)

// Link carries messages between the engine of one rank and those of the others. Its
// methods are called with the engine's lock held.
type Link interface {
	// Post sends m. When it returns it has copied m and the payload, which is small or that
	// of a point-to-point message without credit.
	Post(to levels.Rank, m *Message, payload []byte)
	// Put moves src to the recv that gave the credit in m.Addr, and then m itself; to a rank
	// that is [Far] it may be eager. It reports whether src may be reused already; if not,
	// a later Poll or Flush calls Sent with the token.
	Put(to levels.Rank, m *Message, src []byte, token int32) (done bool)
	// Poll hands over what has arrived, in order per sender, and moves on what is on its
	// way out. It reports whether there was anything.
	Poll(s Sink) bool
	// Flush moves on what is on its way out and reports whether something is left.
	Flush(s Sink) (left bool)
	// Forget lets go of the buffers of what has failed. What has not left is dropped, or
	// leaves from a copy if it goes without credit. What comes is not written anywhere.
	Forget(what Scope, s Sink)
}

// Dialler is a Link whose first message to a rank may have to open a connection. All other
// links are always open.
type Dialler interface {
	// IsOpen reports whether a message to a rank needs no connection that isn't there.
	IsOpen(to levels.Rank) bool
}

// Renewer is a Link whose links to some ranks can be renewed after they broke.
type Renewer interface {
	// Number returns the number of the link to a rank, at first 0; ok is false if it can't be renewed.
	Number(to levels.Rank) (number uint32, ok bool)
	// Renew ends the connections to a rank and drops what is on its way to it or from it. The link is as at first then, and
	// has that number.
	Renew(to levels.Rank, number uint32, s Sink)
}

// Observer is a Link that knows how fast bytes leave for ranks on other nodes.
type Observer interface {
	// Flow returns what has left for a rank, and whether that is known.
	Flow(to levels.Rank) (f Flow, known bool)
}

// Flow is what the system says of a connection's way out, and what came through it.
type Flow struct {
	Rate  int64         // at which bytes last arrived, bytes/s
	Full  bool          // there always was more to send, so the way doesn't carry more
	Bytes int64         // that have arrived
	Busy  time.Duration // for how long something was on its way, and the other rank had room for it
	In    Pace          // of what came from the other rank
}

// Pace is how fast bytes come from a rank while this one waits for the rest of what that one has
// begun to send. It tells of payloads that are too short for Flow.Rate.
type Pace struct {
	Best, Median int64         // of the last payloads, bytes/s; 0: there were too few
	Waited       time.Duration // in all
}

// Reach is what it takes to speak with a rank.
type Reach uint8

// The reaches.
const (
	Near Reach = iota // the rank is on this node
	Far               // it is on another one: a credit takes a round trip
)

// Sink is the engine as its link sees it. A link calls it only while the engine has called
// the link.
type Sink interface {
	// Deliver takes a message; the payload is good until it returns.
	Deliver(from levels.Rank, m *Message, payload []byte)
	// Place returns where the bytes of a large payload go, from m.Offset on; nil if nobody
	// wants them any more. The message itself is delivered after the last of them.
	Place(from levels.Rank, m *Message) []byte
	// Sent says that the bytes of a Put have left.
	Sent(token int32)
	// Fail says, once, that nothing comes from a rank or goes there any more. If the rank
	// said what can't be, err wraps [ErrProtocol].
	Fail(peer levels.Rank, err error)
}

// Tick is how often a rank that waits looks for disagreement and stalls.
const Tick = 100 * time.Millisecond

// Sleeper is how a rank waits for its link. Only the one goroutine that drives the engine
// calls it, except Wake.
type Sleeper interface {
	// Yield lets others run between two polls, of which this is the n-th without success.
	// It is called without the engine's lock.
	Yield(n int)
	// Arm announces that the engine is about to park. It returns false if something has
	// arrived meanwhile. It is called with the engine's lock.
	Arm() bool
	// Park blocks until something arrives, Wake is called, done is closed or a Tick has
	// passed since the last: then it returns true. It is called without the engine's lock.
	Park(done <-chan struct{}) (ticked bool)
	// Wake ends a Park, now or the next one. Any goroutine may call it.
	Wake()
}

// Memory is what the ranks of a node read of each other, seen from one of them. Its
// methods are called with the engine's lock held.
type Memory interface {
	OwnMemory
	PeerMemory
}

// OwnMemory is what the other ranks of the node can read of a rank.
type OwnMemory interface {
	// Shared allocates n bytes that the ranks of the node can read when they are exposed,
	// and what frees them.
	Shared(n int64) (b []byte, free func(), err error)
	// Lend is Shared for the caller: what it returns stays until it is freed, even when the
	// world is closed.
	Lend(n int64) (b []byte, free func(), err error)
	// Readable reports whether the ranks of the node can read memory at p where it lies; at
	// nil, whether they can wherever it lies.
	Readable(p unsafe.Pointer) bool
	// Leave makes this rank's memory older: what it exposed in a run on comm before is not
	// intact.
	Leave(comm CommID)
}

// PeerMemory is what a rank can read of the others of its node.
type PeerMemory interface {
	// Holds reports whether n bytes at p, where a rank has exposed memory that this one can
	// address, are all there.
	Holds(from levels.Rank, p unsafe.Pointer, n int64) bool
	// Read copies memory of another process, at an address there, into dst.
	Read(from levels.Rank, address uint64, dst []byte) error
	// Intact reports whether a rank has not left a run on comm since its memory was of that
	// age.
	Intact(from levels.Rank, comm CommID, age uint64) bool
}

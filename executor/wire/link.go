package wire

import (
	"time"
	"unsafe"

	"github.com/tierflow/tierflow/levels"
)

// Link carries messages between the engine of one rank and those of the others. Its
// methods are called with the engine's lock held.
type Link interface {
	// Post sends m. When it returns it has copied m and the payload: a small one, or one
	// of a point-to-point message without credit.
	Post(to levels.Rank, m *Message, payload []byte)
	// Put moves src to the recv with the credit in m.Addr, and then m itself; to a [Far] rank
	// it may be eager. It reports whether src may be reused already; if not,
	// a later Poll or Flush calls Sent with the token.
	Put(to levels.Rank, m *Message, src []byte, token int32) (done bool)
	// Poll hands over the messages that have arrived, in order per sender, and moves on those on their
	// way out. It reports whether there was anything.
	Poll(s Sink) bool
	// Flush moves on all that is on its way out and reports whether something is left.
	Flush(s Sink) (left bool)
	// Forget lets go of the buffers of a failed scope. Its messages are dropped, or
	// leave from a copy if they go without credit. Later bytes of it are not written anywhere.
	Forget(what Scope, s Sink)
}

// Dialler is a Link that may have to open a connection for the first message to a rank. All other
// links are always open.
type Dialler interface {
	// IsOpen reports whether a message to a rank needs no new connection.
	IsOpen(to levels.Rank) bool
}

// Broadcaster is a Link that can tell all ranks of the world the same at once.
type Broadcaster interface {
	// PostAll sends m, which has no payload, to all other ranks, behind all earlier messages to them. It reports whether
	// it could; if not, [Link.Post] can.
	PostAll(m *Message) bool
}

// Renewer is a Link that can renew its links to some ranks after they broke.
type Renewer interface {
	// Number returns the number of the link to a rank, at first 0; ok is false if it can't be renewed.
	Number(to levels.Rank) (number uint32, ok bool)
	// Renew ends the connections to a rank and drops everything on its way to it or from it. The link is as at first then, and
	// has the given number.
	Renew(to levels.Rank, number uint32, s Sink)
}

// Observer is a Link with measurements of the bytes to ranks on other nodes.
type Observer interface {
	// Flow returns the flow to a rank; known is false without one.
	Flow(to levels.Rank) (f Flow, known bool)
}

// Flow is the system's view of a connection's way out, and the pace of its way in.
type Flow struct {
	Rate  int64         // of the last arrivals, bytes/s
	Full  bool          // there always was more to send, so the way doesn't carry more
	Bytes int64         // arrived so far
	Busy  time.Duration // for how long something was on its way, and the other rank had room for it
	In    Pace          // of payloads from the other rank
}

// Pace is how fast bytes come from a rank while this one waits for the rest of a payload under way.
// It tells of payloads too short for Flow.Rate.
type Pace struct {
	Best, Median int64         // of the last payloads, bytes/s; 0: there were too few
	Waited       time.Duration // in all
}

// Reach is the distance to a rank.
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
	// Place returns the place for the bytes of a large payload, from m.Offset on; nil if nobody
	// wants them any more. The message itself is delivered after the last of them.
	Place(from levels.Rank, m *Message) []byte
	// Sent tells of a Put: its bytes have left.
	Sent(token int32)
	// Fail ends, once, all messages from and to a rank. If the rank
	// broke the protocol, err wraps [ErrProtocol].
	Fail(peer levels.Rank, err error)
}

// Tick is how often a waiting rank looks for disagreement and stalls.
const Tick = 100 * time.Millisecond

// Sleeper is how a rank waits for its link. Only the one goroutine that drives the engine
// calls it, except Wake.
type Sleeper interface {
	// Yield lets others run after the n-th poll without success.
	// It is called without the engine's lock.
	Yield(n int)
	// Arm announces a Park by the engine. It returns false if something has
	// arrived meanwhile. It is called with the engine's lock.
	Arm() bool
	// Park blocks until something arrives, Wake is called, done is closed or a Tick has
	// passed since the last: then it returns true. It is called without the engine's lock.
	Park(done <-chan struct{}) (ticked bool)
	// Wake ends a Park, now or the next one. Any goroutine may call it.
	Wake()
}

// Memory is the memory shared by the ranks of a node, seen from one of them. Its
// methods are called with the engine's lock held.
type Memory interface {
	OwnMemory
	PeerMemory
}

// OwnMemory is the part of a rank's memory open to the other ranks of the node.
type OwnMemory interface {
	// Shared allocates n bytes, readable by the ranks of the node when they are exposed.
	// free frees them.
	Shared(n int64) (b []byte, free func(), err error)
	// Lend is Shared for the caller: the bytes stay until they are freed, even when the
	// world is closed.
	Lend(n int64) (b []byte, free func(), err error)
	// Readable reports whether the ranks of the node can read memory at p in place; at
	// nil, whether they can read all memory of the rank so.
	Readable(p unsafe.Pointer) bool
	// Leave makes this rank's memory older: nothing exposed before in a run on comm is
	// intact any more.
	Leave(comm CommID)
}

// PeerMemory is the memory of the other ranks of a node, open to one of them.
type PeerMemory interface {
	// Holds reports whether a rank has exposed all n bytes at p, an address of this
	// process.
	Holds(from levels.Rank, p unsafe.Pointer, n int64) bool
	// Read copies memory of another process, at an address there, into dst.
	Read(from levels.Rank, address uint64, dst []byte) error
	// Intact reports whether a rank has not left a run on comm since its memory was of that
	// age.
	Intact(from levels.Rank, comm CommID, age uint64) bool
}

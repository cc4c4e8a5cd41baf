package executor

import (
	"fmt"
	"unsafe"

	"github.com/tierflow/tierflow/levels"
)

// kind is what a message means. The zero value is invalid.
type kind uint8

const (
	_           kind = iota
	eagerKind        // payload of a send without credit
	dataKind         // a large payload is in its place
	creditKind       // a recv is ready: addr is where its bytes go
	wantKind         // an eager send has no budget left and asks for credit
	notifyKind       // a notify; addr is what it exposes
	returnKind       // gives back eager budget, nothing else
	probeKind        // "I am at this request": finds ranks that disagree
	byeKind          // the rank has left the communicator after seq runs
	taggedKind       // payload of a small point-to-point send
	offerKind        // a large point-to-point send is ready
	acceptKind       // its recv: addr is where the bytes go
	arrivedKind      // its bytes are there
	maxKind
)

var kindNames = [maxKind]string{
	eagerKind: "eager", dataKind: "data", creditKind: "credit", wantKind: "want",
	notifyKind: "notify", returnKind: "return", probeKind: "probe",
	byeKind: "bye", taggedKind: "tagged", offerKind: "offer", acceptKind: "accept", arrivedKind: "arrived",
}

// String is the kind's name.
func (k kind) String() string {
	if k == 0 || k >= maxKind {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// message is what engines tell each other. Runs are named by (comm, seq, pass),
// steps by the edge between the two ranks.
type message struct {
	kind   kind
	comm   CommID
	seq    uint32
	pass   uint32
	edge   int32          // of the program; the tag of point-to-point
	digest uint32         // of (request, plan, topology), compared on arrival
	refund int32          // eager bytes given back to the one who hears this
	size   int64          // bytes of the payload meant
	addr   unsafe.Pointer // in the memory of the one who says this
	offset int64          // of a part of a large payload, in transports that cut it
	remote uint64         // addr as an address of the sender's process, if it is out of reach here
	age    uint64         // of the sender's memory, see exposure
	ticket uint32         // point-to-point: which of the transfers of the one who hears this; in tagged and offer: of the one who says it
}

// transport carries messages between the engine of one rank and those of the
// others. All methods but wake are called with the engine's lock held, except
// park, which is called without it by the one goroutine that drives.
type transport interface {
	// post sends m; the payload, small or that of a point-to-point message without
	// credit, has been copied when it returns.
	post(to levels.Rank, m *message, payload []byte)
	// put moves src to the recv that gave the credit in m.addr, and then m itself; to a
	// remote rank it may be eager. It reports whether src may be reused already; if not,
	// a later poll calls sent with the token.
	put(to levels.Rank, m *message, src []byte, token int32) bool
	// poll hands over what has arrived, in order per sender, and moves on what is
	// on its way out. It reports whether there was anything.
	poll(s sink) bool
	// flush moves on what is on its way out and reports whether something is left.
	flush(s sink) bool
	// yield lets others run between two polls, of which this is the n-th without
	// success. It is called without the lock, by the one goroutine that drives.
	yield(n int)
	// arm announces that the engine is about to park. It returns false if
	// something has arrived meanwhile.
	arm() bool
	// park blocks until something arrives, wake is called, done is closed or a
	// tick has passed since the last: then it returns true.
	park(done <-chan struct{}) (ticked bool)
	// wake ends a park, now or the next one. Any goroutine may call it.
	wake()
	// forget lets go of the buffers of what has failed: what has not left is dropped, or
	// leaves from a copy if it goes without credit, and what comes is not written anywhere.
	forget(what scope, s sink)
	// remote reports whether a rank is on another node.
	remote(to levels.Rank) bool
	// open reports whether a message to a rank needs no connection that isn't there.
	open(to levels.Rank) bool
	// shared allocates n bytes that the ranks of the node can read when they are
	// exposed, and what frees them.
	shared(n int64) (b []byte, free func(), err error)
	// lend is shared for the caller: what it returns stays until it is freed, even when
	// the world is closed.
	lend(n int64) (b []byte, free func(), err error)
	// readable reports whether the ranks of the node can read memory at p where it
	// lies; at nil, whether they can wherever it lies.
	readable(p unsafe.Pointer) bool
	// holds reports whether n bytes at p, where a rank has exposed memory that this
	// one can address, are all there.
	holds(from levels.Rank, p unsafe.Pointer, n int64) bool
	// read copies memory of another process, at an address there, into dst.
	read(from levels.Rank, address uint64, dst []byte) error
	// intact reports whether a rank has not left a run on comm since it was of that
	// age.
	intact(from levels.Rank, comm CommID, age uint64) bool
	// leave makes this rank's memory older: what it exposed in a run on comm before
	// is not intact.
	leave(comm CommID)
}

// sink is the engine as its transport sees it.
type sink interface {
	// deliver takes a message; the payload is good until it returns.
	deliver(from levels.Rank, m *message, payload []byte)
	// place is where the bytes of a large payload go, from m.offset on; nil if
	// nobody wants them any more. The message itself is delivered after the last.
	place(from levels.Rank, m *message) []byte
	// sent says that the bytes of a put have left.
	sent(token int32)
}

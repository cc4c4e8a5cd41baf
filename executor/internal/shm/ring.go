package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/tierflow/tierflow/executor/wire"
)

// A ring carries messages from one rank to another of its node. It lies in
// memory that both see; each word in it has one writer. The sender fills cells of
// one cache line, the first of a message last: its stamp, the message's position
// plus one, is what the receiver watches, so a small message costs one line.
//
//	cell     word 0   1             2         3            4            5     6     7
//	header   stamp    kind,len,comm seq,turn  edge,digest  refund,comm  size  addr
//	small    stamp    kind,len,comm seq,turn  edge,digest  refund,comm  payload ≤ 24 bytes
//	payload  64 bytes of it, in the cells behind
//
// The low half of the communicator's number is in word 1, the high half in word 4.
// seq, turn and edge are the message's numbers, see [wire.Message.Numbers]; size is its
// extent, see [wire.Message.Extent].
// A message with a payload has no address, and its size is the payload's.
// A message never wraps: what is left of the ring is skipped. The stamp of the
// cell behind a message is cleared before the message is published, because a
// payload of the lap before may look like a stamp.
const (
	cellSize  = 64
	ringCells = 1024
	RingBytes = ringCells * cellSize // of a ring's memory
	inlineAt  = 5 * 8                // of a small payload, in its message's cell
	inlineMax = 24                   // bytes of a payload in its message's cell; submodules count on it
	skipKind  = wire.Kind(0xff)

	// MaxPayload bounds a payload. A message, and the skipped rest of the ring in
	// front of it, take at most half of the ring; the rest is smaller than the
	// message.
	MaxPayload = RingBytes/4 - cellSize
)

// Writer is the sender's end.
type Writer struct {
	Mem      []byte         // RingBytes of them
	Consumed *atomic.Uint64 // cells, written by the receiver in its own memory
	at       uint64         // next cell to write, counted from the beginning of time
	seen     uint64         // consumed, when last looked at
}

// Reader is the receiver's end.
type Reader struct {
	Mem      []byte         // RingBytes of them
	Consumed *atomic.Uint64 // cells, written here for the sender
	at       uint64
	told     uint64 // at, when the sender was last woken
}

func word(mem []byte, cell uint64, w int) *uint64 {
	return (*uint64)(unsafe.Pointer(&mem[cell%ringCells*cellSize+uint64(8*w)]))
}

func stamp(mem []byte, cell uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&mem[cell%ringCells*cellSize]))
}

// cells is how many a message with n bytes of payload takes.
func cells(n int) uint64 {
	if n <= inlineMax {
		return 1
	}
	return 1 + uint64(n+cellSize-1)/cellSize
}

// payloadAt returns the offset of n bytes of payload; the message begins with that
// cell.
func payloadAt(cell uint64, n int) uint64 {
	at := cell % ringCells * cellSize
	if n <= inlineMax {
		return at + inlineAt
	}
	return at + cellSize
}

// fits reports whether push would find room for n bytes of payload.
func (w *Writer) fits(payload int) bool {
	n := cells(payload)
	if left := ringCells - w.at%ringCells; left < n {
		n += left
	}
	return w.room(n)
}

// room reports whether n cells, and the one behind, are free.
func (w *Writer) room(n uint64) bool {
	if w.at+n+1-w.seen <= ringCells {
		return true
	}
	w.seen = w.Consumed.Load()
	return w.at+n+1-w.seen <= ringCells
}

// heading is words 1 to 4 of a message without its refund: which one it is.
func heading(m *wire.Message, payload int) (w1, w2, w3, w4 uint64) {
	seq, turn, edge := m.Numbers()
	return uint64(m.Kind) | uint64(payload)<<8 | uint64(m.Comm)<<32,
		uint64(seq) | uint64(turn)<<32,
		uint64(uint32(edge)) | uint64(m.Digest)<<32,
		uint64(m.Comm) >> 32 << 32
}

// Push sends a message; addr is m.addr as the receiver understands it. It returns
// false if there is no room.
func (w *Writer) Push(m *wire.Message, addr uint64, payload []byte) bool {
	if !w.fits(len(payload)) {
		return false
	}
	n := cells(len(payload))
	if left := ringCells - w.at%ringCells; left < n {
		*word(w.Mem, w.at, 1) = uint64(skipKind)
		w.publish(left)
	}
	w1, w2, w3, w4 := heading(m, len(payload))
	*word(w.Mem, w.at, 1), *word(w.Mem, w.at, 2), *word(w.Mem, w.at, 3) = w1, w2, w3
	*word(w.Mem, w.at, 4) = w4 | uint64(uint32(m.Refund))
	if len(payload) == 0 {
		*word(w.Mem, w.at, 5) = uint64(m.Extent())
		*word(w.Mem, w.at, 6) = addr
	} else {
		copy(w.Mem[payloadAt(w.at, len(payload)):], payload)
	}
	w.publish(n)
	return true
}

func (w *Writer) publish(n uint64) {
	*word(w.Mem, w.at+n, 0) = 0 // a plain store: the atomic one behind it orders both
	stamp(w.Mem, w.at).Store(w.at + 1)
	w.at += n
}

// Pop returns the next message, its address and its payload, which stays good
// until done is called. ok is false if there is none.
func (r *Reader) Pop(m *wire.Message) (addr uint64, payload []byte, ok bool) {
	for {
		if stamp(r.Mem, r.at).Load() != r.at+1 {
			return 0, nil, false
		}
		w1 := *word(r.Mem, r.at, 1)
		if wire.Kind(w1) != skipKind {
			break
		}
		r.at += ringCells - r.at%ringCells
	}
	w1, w2, w3, w4 := *word(r.Mem, r.at, 1), *word(r.Mem, r.at, 2), *word(r.Mem, r.at, 3), *word(r.Mem, r.at, 4)
	*m = wire.Message{
		Kind: wire.Kind(w1), Comm: wire.CommID(w1>>32 | w4>>32<<32), Digest: uint32(w3 >> 32), Refund: int32(uint32(w4)),
	}
	m.SetNumbers(uint32(w2), uint32(w2>>32), int32(uint32(w3)))
	n := uint64(w1>>8) & (1<<24 - 1)
	if n == 0 {
		m.SetExtent(int64(*word(r.Mem, r.at, 5)))
		addr = *word(r.Mem, r.at, 6)
		r.at++
		return addr, nil, true
	}
	m.Size = int64(n)
	from := payloadAt(r.at, int(n))
	n = min(n, RingBytes-from) // a broken peer can't lead us out of the ring
	payload = r.Mem[from : from+n]
	r.at += cells(int(n))
	return 0, payload, true
}

// Expected returns the payload and the refund of the next message, if it is the small
// message m. There must be a next message. If it is another one, the ring stays as it
// was.
func (r *Reader) Expected(m *wire.Message) (payload []byte, refund int64, ok bool) {
	w1, w2, w3, w4 := heading(m, int(m.Size))
	if *word(r.Mem, r.at, 1) != w1 || *word(r.Mem, r.at, 2) != w2 || *word(r.Mem, r.at, 3) != w3 || *word(r.Mem, r.at, 4)>>32 != w4>>32 {
		return nil, 0, false
	}
	n := uint64(m.Size)
	from := payloadAt(r.at, int(n))
	if from+n > RingBytes { // a broken peer
		return nil, 0, false
	}
	return r.Mem[from : from+n], int64(int32(uint32(*word(r.Mem, r.at, 4)))), true
}

// Skip takes the message that expected returned, with n bytes of payload, and is done.
func (r *Reader) Skip(n int) (wake bool) {
	r.at += cells(n)
	return r.Done()
}

// Done gives the cells of all popped messages back. It reports whether a sender that
// sleeps for want of room should be woken. A message and the skipped rest of the ring
// take at most half of the ring (see MaxPayload). So when a sender finds no room, at
// least half is unread.
func (r *Reader) Done() (wake bool) {
	r.Consumed.Store(r.at)
	if r.at-r.told < ringCells/2 {
		return false
	}
	r.told = r.at
	return true
}

// HasMessage reports whether there is a message.
func (r *Reader) HasMessage() bool { return stamp(r.Mem, r.at).Load() == r.at+1 }

package shm

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tierflow/tierflow/executor/wire"
)

// Segment is the memory that one rank shares with its node. The rank alone
// writes it and alone allocates in it; the others read.
//
//	0                sleeping flag, and whether the rank reads no more
//	64               age: how many communicators have broken on the rank
//	128              whether it lets others run
//	192              which ones broke last
//	4 KiB            per peer of the node, in node order:
//	                   what this rank has consumed of that peer's ring and stream
//	                   the ring of messages to that peer
//	                   the stream of large payloads to that peer
//	then             the arena: slots of requests
type Segment struct {
	mem   []byte
	peers int
	pages Pages // nil functions in a peer's
	arena arena

	mu    sync.Mutex
	lent  int    // pieces in the caller's hands, see lend
	unmap func() // set by close if something was lent then
}

const (
	pageSize    = 4096
	streamParts = 4
	agesAt      = 3 * wire.CacheLine
	ages        = (pageSize - agesAt) / 8
	partBytes   = 128 << 10
	laneBytes   = pageSize + RingBytes + streamParts*partBytes
)

// Overhead is what the segment of a rank needs beside its arena on a node of so many ranks, bytes.
func Overhead(peers int) int64 { return pageSize + int64(peers)*laneBytes }

// Pages are taken before they are touched: one that can't be had when a process
// first reads or writes it is a signal that kills. A node of n ranks has n² lanes,
// most of which see little use; so joining takes of each lane what its reader
// looks at, and the first message, or large payload, to a peer takes the rest.

// Reserve takes the pages that peers may touch at any time.
func (s *Segment) Reserve() error {
	err := s.pages.Take(0, pageSize)
	for i := 0; i < s.peers && err == nil; i++ {
		err = s.pages.Take(int64(pageSize+i*laneBytes), 2*pageSize) // up to the ring's first cells
	}
	if err != nil {
		return fmt.Errorf("lanes to the %d ranks of the node: %w", s.peers, err)
	}
	return nil
}

// LeastBytes is what the segment of a rank takes on a node of so many ranks, bytes, before the first message.
func LeastBytes(peers int) int64 { return pageSize + int64(peers)*2*pageSize }

func (s *Segment) reserveRing(peer int) error {
	if err := s.pages.Take(int64(2*pageSize+peer*laneBytes), RingBytes); err != nil {
		return fmt.Errorf("a ring of messages: %w", err)
	}
	return nil
}

func (s *Segment) reserveStream(peer int) error {
	if err := s.pages.Take(int64(2*pageSize+RingBytes+peer*laneBytes), streamParts*partBytes); err != nil {
		return fmt.Errorf("a stream of large payloads: %w", err)
	}
	return nil
}

// Pages takes and gives the pages of a range of memory. Both deal in whole ones.
type Pages struct {
	// Take makes a range usable, or says why it can't be. Pages that were taken stay as they are.
	Take func(off, n int64) error
	// Give gives the pages of a range back to the system, if it can. nil: they stay.
	Give func(off, n int64)
}

// NewSegment lays a segment out in mem.
func NewSegment(mem []byte, peers int, pages Pages) *Segment {
	s := &Segment{mem: mem, peers: peers, pages: pages}
	from := Overhead(peers)
	s.arena = arena{mem: mem[from:], take: func(off, n int64) error { return pages.Take(from+off, n) }}
	if pages.Give != nil {
		s.arena.give = func(off, n int64) { pages.Give(from+off, n) }
	}
	return s
}

// MapSegment is a peer's segment in its memory as mapped here.
func MapSegment(mem []byte, peers int) *Segment { return &Segment{mem: mem, peers: peers} }

// Memory returns all of it.
func (s *Segment) Memory() []byte { return s.mem }

// Alloc takes n bytes out of the arena, until free is called.
func (s *Segment) Alloc(n int64) (b []byte, free func(), err error) { return s.arena.alloc(n) }

// SetSleeping says whether the rank sleeps: its peers then ring its doorbell.
func (s *Segment) SetSleeping(is bool) { s.sleeping().Store(word32(is)) }

// SetAway says whether the rank lets others run.
func (s *Segment) SetAway(is bool) { s.away().Store(word32(is)) }

// SetLeft says that the rank reads no more.
func (s *Segment) SetLeft() { s.leftFlag().Store(1) }

func word32(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}

func (s *Segment) sleeping() *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&s.mem[0])) }

// away is 1 while the rank lets others run.
func (s *Segment) away() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&s.mem[2*wire.CacheLine]))
}

// leftFlag is 1 when the rank reads no more.
func (s *Segment) leftFlag() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&s.mem[4]))
}

// age counts the communicators that have broken on the rank: whose runs it has left
// early.
func (s *Segment) age() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&s.mem[wire.CacheLine]))
}

// broke is the communicator that broke at an age.
func (s *Segment) broke(age uint64) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&s.mem[agesAt+8*(age%ages)]))
}

// Leave notes that a communicator has broken. Peers may read for a while what they were shown: those
// pages stay.
func (s *Segment) Leave(comm wire.CommID) {
	s.arena.keep()
	age := s.age().Load()
	s.broke(age).Store(uint64(comm))
	s.age().Store(age + 1)
}

// intact reports whether a communicator has not broken on the rank since that age. When
// too many others have since then it is not known, and taken as broken.
func (s *Segment) intact(comm wire.CommID, since uint64) bool {
	now := s.age().Load()
	for age := since; age != now && now-since < ages; age++ {
		if s.broke(age).Load() == uint64(comm) {
			return false
		}
	}
	return s.age().Load()-since < ages // else what was read may be newer
}

func (s *Segment) lane(peer int) []byte { return s.mem[pageSize+peer*laneBytes:][:laneBytes] }

// consumedRing and consumedParts are what this rank has taken of a peer's lane.
func (s *Segment) consumedRing(peer int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&s.lane(peer)[0]))
}

func (s *Segment) consumedParts(peer int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&s.lane(peer)[wire.CacheLine]))
}

func (s *Segment) ring(peer int) []byte { return s.lane(peer)[pageSize:][:RingBytes] }

func (s *Segment) part(peer int, n uint64) []byte {
	return s.lane(peer)[pageSize+RingBytes+n%streamParts*partBytes:][:partBytes]
}

// offset is where p lies in the segment, plus one; 0 if it doesn't.
func (s *Segment) offset(p unsafe.Pointer) uint64 {
	off := uintptr(p) - uintptr(unsafe.Pointer(&s.mem[0]))
	if p == nil || off >= uintptr(len(s.mem)) {
		return 0
	}
	return uint64(off) + 1
}

// at is the inverse of offset, in this process's mapping.
func (s *Segment) at(offset uint64) unsafe.Pointer {
	if offset == 0 || offset > uint64(len(s.mem)) {
		return nil
	}
	return unsafe.Pointer(&s.mem[offset-1])
}

// Holds reports whether n bytes from p on lie in the segment.
func (s *Segment) Holds(p unsafe.Pointer, n int64) bool {
	off := s.offset(p)
	return off != 0 && n <= int64(len(s.mem))-int64(off-1)
}

// Lend takes a piece out of the arena that keeps the segment mapped until it is freed.
func (s *Segment) Lend(n int64) ([]byte, func(), error) {
	b, free, err := s.arena.alloc(n)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent++
	return b, func() { free(); s.takeBack() }, nil
}

func (s *Segment) takeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent--
	if s.lent == 0 && s.unmap != nil {
		s.unmap()
	}
}

// Close unmaps the segment, now or when nothing of it is lent any more. Pieces that are
// not lent must not be touched from then on; freeing them does no harm. No pages are given back
// from then on: the memory goes as a whole.
func (s *Segment) Close(unmap func()) {
	s.arena.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent == 0 {
		unmap()
		return
	}
	s.unmap = unmap
}

// arena hands out pieces of memory, first fit. Pages are taken for each piece, and those of long
// free stretches given back. It is safe for concurrent use.
type arena struct {
	mem  []byte
	take func(off, n int64) error
	give func(off, n int64) // nil: they stay
	mu   sync.Mutex
	free []extent // sorted, never adjacent, all below top
	top  int64    // behind this nothing is in use

	taken int64 // behind this no pages are taken; top <= taken
	kept  int64 // pages before this stay taken
}

type extent struct{ off, n int64 }

// arenaAlign keeps pieces on pages of their own, so that freeing one and reusing it
// never touches a neighbour's.
const arenaAlign = pageSize

// givenBytes is the least length of a free stretch whose pages are given back: taking a page again
// takes about as long as writing it once.
const givenBytes = 1 << 20

func (h *arena) alloc(n int64) ([]byte, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n > int64(len(h.mem)) {
		return nil, nil, h.full(n) // and to align it might overflow
	}
	size := (n + arenaAlign - 1) / arenaAlign * arenaAlign
	off, i := h.top, slices.IndexFunc(h.free, func(f extent) bool { return f.n >= size })
	if i >= 0 {
		off = h.free[i].off
	} else if off+size > int64(len(h.mem)) {
		return nil, nil, h.full(n)
	}
	if err := h.take(off, size); err != nil {
		return nil, nil, err
	}
	switch {
	case i < 0:
		h.top += size
		h.taken = max(h.taken, h.top)
	case h.free[i].n == size:
		h.free = slices.Delete(h.free, i, i+1)
	default:
		h.free[i] = extent{off + size, h.free[i].n - size}
	}
	return h.piece(off, n, size)
}

func (h *arena) full(n int64) error {
	return fmt.Errorf("shared memory of this rank is full: no %d bytes in one piece, %d of %d were taken", n, h.top, len(h.mem))
}

func (h *arena) piece(off, n, size int64) ([]byte, func(), error) {
	return h.mem[off : off+n : off+size], func() { h.release(extent{off, size}) }, nil
}

func (h *arena) release(e extent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, _ := slices.BinarySearchFunc(h.free, e.off, func(f extent, off int64) int { return int(f.off - off) })
	h.free = slices.Insert(h.free, i, e)
	if i+1 < len(h.free) && h.free[i].off+h.free[i].n == h.free[i+1].off {
		h.free[i].n += h.free[i+1].n
		h.free = slices.Delete(h.free, i+1, i+2)
	}
	if i > 0 && h.free[i-1].off+h.free[i-1].n == h.free[i].off {
		h.free[i-1].n += h.free[i].n
		h.free = slices.Delete(h.free, i, i+1)
		i--
	}
	from, to := h.free[i].off, h.free[i].off+h.free[i].n
	if to == h.top {
		h.free, h.top, to = h.free[:i], from, h.taken
	}
	if from = max(from, h.kept); h.give == nil || to-from < givenBytes {
		return
	}
	h.give(from, to-from)
	if to == h.taken {
		h.taken = from
	}
}

// keep keeps all pages that are taken now, for good.
func (h *arena) keep() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = max(h.kept, h.taken)
}

// close gives no pages back from now on.
func (h *arena) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.give = nil
}

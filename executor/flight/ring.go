package flight

import (
	"fmt"
	"math/bits"
	"os"
	"time"
	"unsafe"
)

// Ring records. A nil one does nothing. It is not safe for concurrent use: the
// lock of its engine guards it.
type Ring struct {
	mem            []byte // all of the below; nil when it was unmapped
	head           *header
	calls          []call
	events         []Event
	count          uint64
	now            int64  // the last reading of the clock
	callsSinceTick uint32 // calls begun since then
	pending        *call  // begun since then and not ended; nil: none
	pendingFrom    uint64 // the number of its first event
	epoch          time.Time
	unmap          func() error // nil without a file
	path           string
}

// New makes a ring of a rank's last n events in memory, rounded up to a power of
// two. 0: 1024; negative: a nil Ring.
func New(rank, ranks, n int) *Ring {
	if n < 0 {
		return nil
	}
	return lay(make([]byte, fileBytes(size(n))), rank, ranks, size(n))
}

// Create is [New] in a file. It replaces an older recording of this name and
// nothing else.
func Create(path string, rank, ranks, n int) (*Ring, error) {
	if n < 0 {
		return nil, nil
	}
	if err := replaceable(path); err != nil {
		return nil, err
	}
	mem, unmap, err := mapFile(path, fileBytes(size(n)))
	if err != nil {
		return nil, fmt.Errorf("recorder file %s: %w", path, err)
	}
	r := lay(mem, rank, ranks, size(n))
	r.unmap, r.path = unmap, path
	return r, nil
}

func size(n int) int {
	if n == 0 {
		return DefaultEvents
	}
	return min(MaxEvents, 1<<bits.Len(uint(n-1)))
}

// replaceable complains about a file unless it is a recording. The old file is
// removed, not written over: another process may have it mapped.
func replaceable(path string) error {
	info, err := os.Lstat(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("recorder file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("recorder file %s exists and is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("recorder file: %w", err)
	}
	defer f.Close()
	var got [len(magic)]byte
	if n, _ := f.Read(got[:]); n > 0 && got != magic {
		return fmt.Errorf("recorder file %s exists and is no recording; it is left alone", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("recorder file: %w", err)
	}
	return nil
}

// lay begins a recording in zeroed memory.
func lay(mem []byte, rank, ranks, n int) *Ring {
	r := &Ring{mem: mem, epoch: time.Now(), now: 1}
	r.head = (*header)(unsafe.Pointer(&mem[0]))
	r.calls = unsafe.Slice((*call)(unsafe.Pointer(&mem[headerBytes])), calls)
	r.events = unsafe.Slice((*Event)(unsafe.Pointer(&mem[headerBytes+calls*callBytes])), n)
	*r.head = header{
		Magic: magic, Version: version, Rank: int32(rank), Ranks: int32(ranks), PID: int32(os.Getpid()),
		Start: r.epoch.UnixNano(), Events: uint32(n), Calls: calls, Seen: 1,
	}
	return r
}

// off tells whether nothing is to be recorded.
func (r *Ring) off() bool { return r == nil || r.head == nil }

// Path is the file; empty without one.
func (r *Ring) Path() string {
	if r == nil {
		return ""
	}
	return r.path
}

// clockEvery is how many calls, one after the other and without a wait, share a
// reading of the clock.
const clockEvery = 16

// Tick reads the clock. Events have the time of its last reading, as a reading costs more
// than all else here. A waiting call begun since then, and its events, get
// the time of this reading: the last one may be of before the caller
// computed. It returns the time since the reading before.
func (r *Ring) Tick() (since time.Duration) {
	if r.off() {
		return 0
	}
	before := r.now
	r.now = max(1, int64(time.Since(r.epoch)))
	r.head.Seen, r.callsSinceTick = r.now, 0
	if r.pending != nil {
		r.pending.Begun = r.now
		r.pending = nil
		for n := max(r.pendingFrom, r.count-min(r.count, uint64(len(r.events)))); n < r.count; n++ {
			r.events[n&uint64(len(r.events)-1)].Time = r.now
		}
	}
	return time.Duration(r.now - before)
}

// Add records an event. Its Time is filled in.
func (r *Ring) Add(e Event) {
	r.Message(e.Kind, e.Message, e.Comm, e.Seq, e.Pass, e.Peer, e.Edge, e.Bytes)
}

// Message is [Ring.Add] with the fields of an event one by one: so they travel in
// registers.
func (r *Ring) Message(k Kind, message uint8, comm uint64, seq, pass uint32, peer, edge int32, bytes int64) {
	if r.off() {
		return
	}
	e := &r.events[r.count&uint64(len(r.events)-1)] // a power of two
	e.Time, e.Comm, e.Seq, e.Pass = r.now, comm, seq, pass
	e.Kind, e.Message, e.stamp = k, message, uint16(r.count)
	e.Peer, e.Edge, e.Bytes = peer, edge, bytes
	// Last: a process that dies here has counted only whole events. An
	// atomic store would cost more than the event, and isn't needed: the dead write no further,
	// and readers of the living look at stamps.
	r.count++
	r.head.Count = r.count
}

// Begin records the start of a call, with the text of its request. It reads
// the clock for one call of several, see [Ring.Tick].
func (r *Ring) Begin(comm uint64, seq uint32, request string, bytes int64) {
	if r.off() {
		return
	}
	c := &r.calls[seq%runs]
	if r.callsSinceTick++; r.pending != nil || r.callsSinceTick >= clockEvery || r.count == 0 {
		r.Tick()
	} else {
		r.pending, r.pendingFrom = c, r.count
	}
	c.Begun = 0 // nothing is here while the rest changes
	c.Comm, c.Seq, c.Ended, c.Waits, c.Apart = comm, seq, 0, 0, 0
	c.TextLen = uint32(copy(c.Text[:], request))
	c.Begun = r.now
	r.Message(RunBegin, 0, comm, seq, 0, -1, -1, bytes)
}

// call is the record of a call, nil if a later one has its place.
func (r *Ring) call(comm uint64, seq uint32) *call {
	if c := &r.calls[seq%runs]; c.Comm == comm && c.Seq == seq && c.Begun != 0 {
		return c
	}
	return nil
}

// End records the end of a call.
func (r *Ring) End(comm uint64, seq, pass uint32, failed bool) {
	if r.off() {
		return
	}
	if c := r.call(comm, seq); c != nil {
		c.Ended = r.now
		if c == r.pending {
			r.pending = nil
		}
	}
	k := RunEnd
	if failed {
		k = RunFail
	}
	r.Message(k, 0, comm, seq, pass, -1, -1, 0)
}

// Wait notes that a call has stood still for so long. what lists its open steps;
// e.Peer and e.Edge are the first of them.
func (r *Ring) Wait(e Event, long time.Duration, what string) {
	if r.off() {
		return
	}
	if c := r.call(e.Comm, e.Seq); c != nil {
		c.Waits = max(1, r.now-int64(long))
		c.WaitLen = uint32(copy(c.Wait[:], what))
	}
	e.Kind = Waiting
	r.Add(e)
}

// WaitTransfer notes that a send or receive has stood still for some time.
// e.Peer is the other rank, e.Edge the tag. It returns a place for [Ring.EndTransfer]; 0:
// there is none.
func (r *Ring) WaitTransfer(e Event, long time.Duration, what string) (place uint8) {
	if r.off() {
		return 0
	}
	e.Kind, e.Message = Waiting, tagged
	r.Add(e)
	for i := range r.calls[runs:] {
		if c := &r.calls[runs+i]; c.Begun == 0 || c.Ended != 0 {
			begun := max(1, r.now-int64(long))
			*c = call{Comm: e.Comm, Ended: begun, Waits: begun, Apart: 1}
			c.TextLen = uint32(copy(c.Text[:], what))
			c.Begun, c.Ended = begun, 0
			return uint8(i + 1)
		}
	}
	return 0
}

// EndTransfer notes that the send or receive with this place waits no more.
func (r *Ring) EndTransfer(place uint8) {
	if !r.off() && place > 0 {
		r.calls[runs+int(place)-1].Ended = r.now
	}
}

// LastEnded returns the text and number of the last call to end, and how long ago, at the
// most: some calls share a reading of the clock. ok is false if none is known.
func (r *Ring) LastEnded() (what string, seq uint32, ago time.Duration, ok bool) {
	if r.off() {
		return "", 0, 0, false
	}
	var last *call
	for i := range r.calls[:runs] {
		c := &r.calls[i]
		later := last == nil || c.Ended > last.Ended || c.Ended == last.Ended && int32(c.Seq-last.Seq) > 0
		if c.Begun != 0 && c.Ended != 0 && later {
			last = c
		}
	}
	if last == nil {
		return "", 0, 0, false
	}
	return clean(last.Text[:last.TextLen]), last.Seq, time.Since(r.epoch) - time.Duration(last.Ended), true
}

// Move notes that a call waits no more.
func (r *Ring) Move(comm uint64, seq uint32) {
	if !r.off() {
		if c := r.call(comm, seq); c != nil {
			c.Waits = 0
		}
	}
}

// Break records the break of a communicator because of a rank.
func (r *Ring) Break(comm uint64, by int32, why error) {
	if r.off() {
		return
	}
	r.Tick()
	r.head.FailAt = r.now
	r.head.FailLen = uint32(copy(r.head.Fail[:], why.Error()))
	r.Add(Event{Kind: Broken, Comm: comm, Peer: by, Edge: -1})
}

// Recording returns a copy of the record so far, named name; nil if nothing is recorded.
func (r *Ring) Recording(name string) *Recording {
	if r.off() {
		return nil
	}
	rec, err := ReadRecording(name, r.mem[:fileBytes(len(r.events))])
	if err != nil {
		panic(fmt.Sprintf("flight: the ring can't be read: %v", err))
	}
	return rec
}

// Close notes that the rank left in good order, and unmaps the file. This one stays.
// From then on nothing is recorded.
func (r *Ring) Close() error {
	if r.off() {
		return nil
	}
	r.Tick()
	r.head.Closed = 1
	if r.unmap == nil {
		return nil
	}
	r.mem, r.head, r.calls, r.events = nil, nil, nil, nil
	if err := r.unmap(); err != nil {
		return fmt.Errorf("recorder file %s: %w", r.path, err)
	}
	return nil
}

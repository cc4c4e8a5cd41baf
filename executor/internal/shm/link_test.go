//go:build linux

package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
)

// shmPair is both ends of a link between the places 0 and 2 of a node of three,
// on the heap. The bells count.
func shmPair() (a, b *Link, bells *[2]atomic.Int64) {
	return shmPairIn(wire.Aligned(Overhead(pairPeers)), wire.Aligned(Overhead(pairPeers)))
}

// pairPeers is how many ranks the segments of shmPair have room for.
const pairPeers = 3

// shmPairIn is shmPair in zeroed memory of Overhead(pairPeers) bytes each.
func shmPairIn(my, their []byte) (a, b *Link, bells *[2]atomic.Int64) {
	mine := NewSegment(my, pairPeers, allPages)
	theirs := NewSegment(their, pairPeers, allPages)
	bells = new([2]atomic.Int64)
	a = NewLink(7, mine, theirs, 0, 2, MaxPayload, func() { bells[1].Add(1) })
	b = NewLink(5, theirs, mine, 2, 0, MaxPayload, func() { bells[0].Add(1) })
	return a, b, bells
}

func TestLine(t *testing.T) {
	wiretest.RunLines(t, func(*testing.T) (wiretest.Line, wiretest.Line) {
		a, b, _ := shmPair()
		return a, b
	})
}

func TestShmLink(t *testing.T) {
	for _, parallel := range []bool{false, true} {
		for range 4 {
			seed := rand.Uint64()
			draw := rand.New(rand.NewPCG(seed, 0))
			a, b, _ := shmPair()
			wiretest.Exchange(t, &wiretest.Side{Link: a, Sends: wiretest.DrawLetters(draw, 100, 5*partBytes)}, &wiretest.Side{Link: b, Sends: wiretest.DrawLetters(draw, 100, 5*partBytes)}, seed, parallel)
		}
	}
}

// Memory that isn't there when the first message, or the first large payload, is
// sent ends the link with what it was for; nothing is written.
func TestShmLinkWithoutMemory(t *testing.T) {
	full := errors.New("full")
	for _, test := range []struct {
		allowed int // commits before memory ends
		send    func(a *Link)
		want    string
	}{
		{0, func(a *Link) { a.Post(&wire.Message{Kind: wire.Eager, Edge: -1}, nil) }, "shared memory towards it: a ring of messages: full"},
		{1, func(a *Link) {
			a.Put(&wire.Message{Kind: wire.Data, Edge: -1, Size: 1 << 20}, make([]byte, 1<<20), 0)
		}, "shared memory towards it: a stream of large payloads: full"},
	} {
		a, b, _ := shmPair()
		lane := a.own.lane(a.toPeer)
		before := append([]byte(nil), lane...)
		a.own.pages.Take = func(off, n int64) error {
			if test.allowed--; test.allowed < 0 {
				return full
			}
			from := int64(a.toPeer*laneBytes + pageSize)
			if off < from || off+n > from+laneBytes {
				t.Errorf("memory from %d to %d was asked for, the lane is from %d to %d", off, off+n, from, from+laneBytes)
			}
			return nil
		}
		test.send(a)
		a.Flush(&wiretest.Reader{})
		if a.Dead == nil || a.Dead.Error() != test.want || a.IsBusy() {
			t.Errorf("the link's error is %v, busy %v; want %s", a.Dead, a.IsBusy(), test.want)
		}
		if b.Poll(&wiretest.Reader{}) || !bytes.Equal(lane, before) {
			t.Error("something was written all the same")
		}
		if err := a.own.Reserve(); err == nil || err.Error() != "lanes to the 3 ranks of the node: full" {
			t.Errorf("joining: %v", err)
		}
	}
}

// A rank that sleeps because the other reads nothing is woken when it does.
func TestShmLinkWakesStarvedSender(t *testing.T) {
	sink := &wiretest.Reader{}
	for name, send := range map[string]func(a *Link){
		"messages": func(a *Link) { a.Post(&wire.Message{Kind: wire.Eager, Edge: -1, Size: 1000}, make([]byte, 1000)) },
		"stream": func(a *Link) {
			a.Put(&wire.Message{Kind: wire.Data, Edge: -1, Size: 10 * partBytes}, make([]byte, 10*partBytes), 0)
		},
	} {
		a, b, bells := shmPair()
		for range 200 {
			send(a)
			a.Flush(sink)
		}
		if !a.IsBusy() || !a.stuck() {
			t.Fatalf("%s: the link takes everything", name)
		}
		a.own.sleeping().Store(1) // as before a park
		b.Poll(&wiretest.Reader{})
		if bells[0].Load() == 0 {
			t.Errorf("%s: the sender was not woken", name)
		}
		if a.stuck() {
			t.Errorf("%s: the sender finds no room after being woken", name)
		}
	}
}

// What no rank says ends the link with one error; nothing panics, and nothing is
// read or written outside the memory.
func TestShmLinkProtocol(t *testing.T) {
	for name, m := range map[string]struct {
		wire.Message
		addr    uint64
		payload int
	}{
		"kind":          {Message: wire.Message{Kind: 200}},
		"size":          {Message: wire.Message{Kind: wire.Credit, Size: -1}},
		"refund":        {Message: wire.Message{Kind: wire.Credit, Refund: -1}},
		"payload":       {Message: wire.Message{Kind: wire.Credit}, payload: 100},
		"long":          {Message: wire.Message{Kind: wire.Eager, Size: MaxPayload + 8}, payload: MaxPayload + 8},
		"short":         {Message: wire.Message{Kind: wire.Eager, Size: 9}},
		"part":          {Message: wire.Message{Kind: partKind, Size: 10}, addr: uint64(wire.Credit)},
		"part offset":   {Message: wire.Message{Kind: partKind, Size: 10}, addr: 11<<8 | uint64(wire.Data)},
		"part negative": {Message: wire.Message{Kind: partKind, Size: -10}, addr: uint64(wire.Data)},
		"no part kind":  {Message: wire.Message{Kind: partKind, Size: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := shmPair()
			if !a.out.Push(&m.Message, m.addr, make([]byte, m.payload)) {
				t.Fatal("no room")
			}
			a.Post(&wire.Message{Kind: wire.Credit, Edge: -5}, nil)
			got := &wiretest.Reader{}
			b.Poll(got)
			if !errors.Is(b.Dead, wire.ErrProtocol) {
				t.Errorf("the link ended with %v", b.Dead)
			}
			if got.Err != nil {
				t.Errorf("delivered after the error: %v", got.Err)
			}
			b.Post(&wire.Message{Kind: wire.Credit}, nil)
			if b.Put(&wire.Message{Kind: wire.Data}, make([]byte, 10), 0); b.IsBusy() {
				t.Error("a dead link wants to send")
			}
		})
	}
}

// Random bytes in place of a peer's lane.
func FuzzShmLink(f *testing.F) {
	f.Add([]byte{byte(partKind), 0, 0, 0, 1, 2, 3, 4})
	// Memory of its own for each run would take longer than all else. Payloads in parts are nothing but bytes.
	my, their := wire.Aligned(Overhead(pairPeers)), wire.Aligned(Overhead(pairPeers))
	f.Fuzz(func(t *testing.T, garbage []byte) {
		for _, segment := range [][]byte{my, their} {
			clear(segment[:pageSize])
			for lane := pageSize; lane < len(segment); lane += laneBytes {
				clear(segment[lane : lane+pageSize+RingBytes])
			}
		}
		a, b, _ := shmPairIn(my, their)
		b.In.Mem = a.own.ring(2)
		for i := range uint64(8) {
			cell := garbage
			if from := int(i) * (cellSize - 8); from < len(garbage) {
				cell = garbage[from:]
			}
			var words [cellSize - 8]byte
			copy(words[:], cell)
			for w := range 7 {
				*word(b.In.Mem, b.In.at, w+1) = binary.NativeEndian.Uint64(words[8*w:])
			}
			stamp(b.In.Mem, b.In.at).Store(b.In.at + 1)
			b.Poll(&wiretest.Reader{Places: map[int32][]byte{}})
		}
	})
}

// A failed communicator's buffers are let go of; the others' stay.
func TestShmLinkForget(t *testing.T) {
	a, b, _ := shmPair()
	got, other := &wiretest.Reader{Left: 3}, &wiretest.Reader{Places: map[int32][]byte{}}
	large := 20 * partBytes
	a.Put(&wire.Message{Kind: wire.Data, Comm: 1, Size: int64(large)}, make([]byte, large), 0)
	a.Put(&wire.Message{Kind: wire.Data, Comm: 2, Size: 3}, []byte("abc"), 1)
	a.Put(&wire.Message{Kind: wire.Data, Comm: 1, Size: 3, Refund: 9}, []byte("def"), 2)
	a.Flush(got)
	a.Forget(wire.Scope{Comm: 1}, got)
	if got.Left != 1 {
		t.Errorf("%d puts are left, want the other communicator's", got.Left)
	}
	b.Poll(other)
	a.Flush(got)
	b.Poll(other)
	if got.Left != 0 || a.IsBusy() || other.Refunds != 9 {
		t.Errorf("%d puts are left; %d bytes were given back, want 9", got.Left, other.Refunds)
	}
}

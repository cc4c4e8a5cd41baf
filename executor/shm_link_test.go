//go:build linux

package executor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// shmPair is both ends of a link between the places 0 and 2 of a node of three,
// on the heap. The bells count.
func shmPair() (a, b *shmLink, bells *[2]atomic.Int64) {
	const peers = 3
	mine := newSegment(aligned(segmentOverhead(peers)), peers, func(int64, int64) error { return nil })
	theirs := newSegment(aligned(segmentOverhead(peers)), peers, func(int64, int64) error { return nil })
	bells = new([2]atomic.Int64)
	a = newShmLink(7, mine, theirs, 0, 2, processEagerMax, func() { bells[1].Add(1) })
	b = newShmLink(5, theirs, mine, 2, 0, processEagerMax, func() { bells[0].Add(1) })
	return a, b, bells
}

func TestShmLink(t *testing.T) {
	for _, parallel := range []bool{false, true} {
		for range 4 {
			seed := rand.Uint64()
			draw := rand.New(rand.NewPCG(seed, 0))
			a, b, _ := shmPair()
			exchange(t, &side{link: a, sends: drawLetters(draw, 100, 5*partBytes)}, &side{link: b, sends: drawLetters(draw, 100, 5*partBytes)}, seed, parallel)
		}
	}
}

// Memory that isn't there when the first message, or the first large payload, is
// sent ends the link with what it was for; nothing is written.
func TestShmLinkWithoutMemory(t *testing.T) {
	full := errors.New("full")
	for _, test := range []struct {
		allowed int // commits before memory ends
		send    func(a *shmLink)
		want    string
	}{
		{0, func(a *shmLink) { a.post(&message{kind: eagerKind, edge: -1}, nil) }, "shared memory towards it: a ring of messages: full"},
		{1, func(a *shmLink) { a.put(&message{kind: dataKind, edge: -1, size: 1 << 20}, make([]byte, 1<<20), 0) }, "shared memory towards it: a stream of large payloads: full"},
	} {
		a, b, _ := shmPair()
		lane := a.own.lane(a.toPeer)
		before := append([]byte(nil), lane...)
		a.own.commit = func(off, n int64) error {
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
		a.flush(&reader{})
		if a.dead == nil || a.dead.Error() != test.want || a.busy() {
			t.Errorf("the link's error is %v, busy %v; want %s", a.dead, a.busy(), test.want)
		}
		if b.poll(&reader{}) || !bytes.Equal(lane, before) {
			t.Error("something was written all the same")
		}
		if err := a.own.reserve(); err == nil || err.Error() != "lanes to the 3 ranks of the node: full" {
			t.Errorf("joining: %v", err)
		}
	}
}

// A rank that sleeps because the other reads nothing is woken when it does.
func TestShmLinkWakesStarvedSender(t *testing.T) {
	sink := &reader{}
	for name, send := range map[string]func(a *shmLink){
		"messages": func(a *shmLink) { a.post(&message{kind: eagerKind, edge: -1, size: 1000}, make([]byte, 1000)) },
		"stream": func(a *shmLink) {
			a.put(&message{kind: dataKind, edge: -1, size: 10 * partBytes}, make([]byte, 10*partBytes), 0)
		},
	} {
		a, b, bells := shmPair()
		for range 200 {
			send(a)
			a.flush(sink)
		}
		if !a.busy() || !a.stuck() {
			t.Fatalf("%s: the link takes everything", name)
		}
		a.own.sleeping().Store(1) // as before a park
		b.poll(&reader{})
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
		message
		addr    uint64
		payload int
	}{
		"kind":          {message: message{kind: 200}},
		"size":          {message: message{kind: creditKind, size: -1}},
		"refund":        {message: message{kind: creditKind, refund: -1}},
		"payload":       {message: message{kind: creditKind}, payload: 100},
		"long":          {message: message{kind: eagerKind, size: processEagerMax + 8}, payload: processEagerMax + 8},
		"short":         {message: message{kind: eagerKind, size: 9}},
		"part":          {message: message{kind: partKind, size: 10}, addr: uint64(creditKind)},
		"part offset":   {message: message{kind: partKind, size: 10}, addr: 11<<8 | uint64(dataKind)},
		"part negative": {message: message{kind: partKind, size: -10}, addr: uint64(dataKind)},
		"no part kind":  {message: message{kind: partKind, size: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := shmPair()
			if !a.out.push(&m.message, m.addr, make([]byte, m.payload)) {
				t.Fatal("no room")
			}
			a.post(&message{kind: creditKind, edge: -5}, nil)
			got := &reader{}
			b.poll(got)
			if !errors.Is(b.dead, ErrProtocol) {
				t.Errorf("the link ended with %v", b.dead)
			}
			if got.err != nil {
				t.Errorf("delivered after the error: %v", got.err)
			}
			b.post(&message{kind: creditKind}, nil)
			if b.put(&message{kind: dataKind}, make([]byte, 10), 0); b.busy() {
				t.Error("a dead link wants to send")
			}
		})
	}
}

// Random bytes in place of a peer's lane.
func FuzzShmLink(f *testing.F) {
	f.Add([]byte{byte(partKind), 0, 0, 0, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, garbage []byte) {
		a, b, _ := shmPair()
		b.in.mem = a.own.ring(2)
		for i := range uint64(8) {
			cell := garbage
			if from := int(i) * (cellSize - 8); from < len(garbage) {
				cell = garbage[from:]
			}
			var words [cellSize - 8]byte
			copy(words[:], cell)
			for w := range 7 {
				*word(b.in.mem, b.in.at, w+1) = binary.NativeEndian.Uint64(words[8*w:])
			}
			stamp(b.in.mem, b.in.at).Store(b.in.at + 1)
			b.poll(&reader{places: map[int32][]byte{}})
		}
	})
}

// A failed communicator's buffers are let go of; the others' stay.
func TestShmLinkForget(t *testing.T) {
	a, b, _ := shmPair()
	got, other := &reader{left: 3}, &reader{places: map[int32][]byte{}}
	large := 20 * partBytes
	a.put(&message{kind: dataKind, comm: 1, size: int64(large)}, make([]byte, large), 0)
	a.put(&message{kind: dataKind, comm: 2, size: 3}, []byte("abc"), 1)
	a.put(&message{kind: dataKind, comm: 1, size: 3, refund: 9}, []byte("def"), 2)
	a.flush(got)
	a.forget(scope{comm: 1}, got)
	if got.left != 1 {
		t.Errorf("%d puts are left, want the other communicator's", got.left)
	}
	b.poll(other)
	a.flush(got)
	b.poll(other)
	if got.left != 0 || a.busy() || other.refunds != 9 {
		t.Errorf("%d puts are left; %d bytes were given back, want 9", got.left, other.refunds)
	}
}

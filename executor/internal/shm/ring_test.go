//go:build linux

package shm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/submodules"
)

// ringPair is both ends of a ring on the heap, where the race detector sees it.
func ringPair() (*Writer, *Reader) {
	mem, consumed := wire.Aligned(RingBytes), new(atomic.Uint64)
	return &Writer{Mem: mem, Consumed: consumed}, &Reader{Mem: mem, Consumed: consumed}
}

// randomMessage draws one whose payload may look like stamps: small numbers near
// the positions of cells.
func randomMessage(r *rand.Rand, at uint64, most int) (m wire.Message, addr uint64, payload []byte) {
	m = wire.Message{
		Kind: wire.Kind(1 + r.IntN(int(wire.MaxKind)-1)), Comm: wire.CommID(r.Uint64()), Digest: r.Uint32(), Refund: int32(r.Uint32()),
	}
	m.SetNumbers(r.Uint32(), r.Uint32(), int32(r.Uint32()))
	payload = make([]byte, r.IntN(1+r.IntN(most+1)))
	for i := 0; i+8 <= len(payload); i += 8 {
		binary.NativeEndian.PutUint64(payload[i:], at+uint64(r.IntN(3*ringCells)))
	}
	if len(payload) > 0 {
		m.Size = int64(len(payload))
		return m, 0, payload
	}
	m.SetExtent(int64(r.Uint64()))
	return m, r.Uint64(), payload
}

// A payload up to the bound that submodules count on rides in its message's line.
func TestRingInline(t *testing.T) {
	for n := range submodules.InlineMax + 2 {
		w, r := ringPair()
		want := bytes.Repeat([]byte{0xa7}, n)
		m := wire.Message{Kind: wire.Eager, Comm: 1<<40 + 1, Seq: 2, Pass: 3, Edge: 4, Digest: 5, Refund: 6, Size: int64(n)}
		if !w.Push(&m, 0, want) {
			t.Fatalf("no room for %d bytes", n)
		}
		clear(w.Mem[cellSize:]) // all but the line
		wantLines := uint64(1)
		if n > submodules.InlineMax {
			want, wantLines = make([]byte, n), 2
		}
		var got wire.Message
		_, payload, ok := r.Pop(&got)
		if !ok || got != m || !bytes.Equal(payload, want) || r.at != wantLines {
			t.Errorf("%d bytes: got %+v with %x in %d lines, want %+v with %x in %d", n, got, payload, r.at, m, want, wantLines)
		}
	}
}

// One goroutine pushes and another pops; every message arrives once, in order,
// and whole.
func TestRingConcurrent(t *testing.T) {
	const messages = 20_000
	seed := rand.Uint64()
	w, r := ringPair()
	fail := make(chan error, 1)
	go func() { // its end is waited for below
		draw := rand.New(rand.NewPCG(seed, 0))
		var got wire.Message
		for i := range messages {
			want, wantAddr, wantPayload := randomMessage(draw, uint64(i), MaxPayload)
			addr, payload, ok := r.Pop(&got)
			for !ok {
				runtime.Gosched()
				addr, payload, ok = r.Pop(&got)
			}
			if got != want || addr != wantAddr || !bytes.Equal(payload, wantPayload) {
				fail <- fmt.Errorf("message %d: %+v with %d bytes, want %+v with %d", i, got, len(payload), want, len(wantPayload))
				return
			}
			r.Done()
		}
		fail <- nil
	}()
	draw := rand.New(rand.NewPCG(seed, 0))
	for i := range messages {
		m, addr, payload := randomMessage(draw, uint64(i), MaxPayload)
		for !w.Push(&m, addr, payload) {
			if len(fail) > 0 {
				t.Fatal(<-fail)
			}
			runtime.Gosched()
		}
	}
	if err := <-fail; err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

// Random pushes and pops against a queue: a ring refuses only when it is full,
// takes a message again once half of it was read, and says when to wake the sender.
func TestRingProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, r := ringPair()
		draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		most := rapid.SampledFrom([]int{0, inlineMax, 200, MaxPayload}).Draw(t, "most")
		type sent struct {
			m       wire.Message
			addr    uint64
			payload []byte
		}
		var queue []sent
		used := func() (n uint64) {
			for _, s := range queue {
				n += cells(len(s.payload))
			}
			return n
		}
		starved, woken := false, false
		for range rapid.IntRange(1, 3000).Draw(t, "steps") {
			if draw.IntN(3) > 0 {
				m, addr, payload := randomMessage(draw, w.at, most)
				fits := w.fits(len(payload))
				if got := w.Push(&m, addr, payload); got != fits {
					t.Fatalf("fits says %v, push %v", fits, got)
				}
				if fits {
					queue = append(queue, sent{m, addr, payload})
				} else {
					if free := ringCells - used(); free > 2*cells(MaxPayload) {
						t.Fatalf("no room for %d bytes with %d cells free", len(payload), free)
					}
					starved, woken = true, false
				}
				continue
			}
			var m wire.Message
			addr, payload, ok := r.Pop(&m)
			if ok != (len(queue) > 0) {
				t.Fatalf("pop says %v with %d messages in the ring", ok, len(queue))
			}
			if !ok {
				if starved && !woken {
					t.Fatal("a sender that found no room was not woken before the ring was empty")
				}
				starved = false
				continue
			}
			if s := queue[0]; m != s.m || addr != s.addr || !bytes.Equal(payload, s.payload) {
				t.Fatalf("got %+v, want %+v", m, s.m)
			}
			queue = queue[1:]
			woken = r.Done() || woken
		}
	})
}

// Whatever a peer writes into the ring, reading stays inside it.
func FuzzRingReader(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff}, uint64(0))
	f.Add(bytes.Repeat([]byte{0xff}, 64), uint64(ringCells-1))
	f.Fuzz(func(t *testing.T, garbage []byte, at uint64) {
		_, r := ringPair()
		r.at = at % (1 << 60)
		copy(r.Mem[r.at%ringCells*cellSize:], garbage)
		var m wire.Message
		for range 4 {
			stamp(r.Mem, r.at).Store(r.at + 1)
			_, payload, ok := r.Pop(&m)
			if ok && (len(payload) > RingBytes || r.at > at+10*ringCells) {
				t.Fatalf("%d bytes of payload, at cell %d", len(payload), r.at)
			}
			r.Done()
		}
	})
}

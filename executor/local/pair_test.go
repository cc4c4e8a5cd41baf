package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// numbered is a rank that checks that it hears each of the others count from zero.
type numbered struct {
	heard []int32 // by rank
	put   []byte  // what addresses point at
	err   error
}

var _ wire.Sink = (*numbered)(nil)

func (n *numbered) Deliver(from levels.Rank, m *wire.Message, payload []byte) {
	if want := n.heard[from]; m.Edge != want && n.err == nil {
		n.err = fmt.Errorf("message %d of rank %d came as number %d", m.Edge, from, want)
	}
	n.heard[from]++
	want := bytes.Repeat(binary.NativeEndian.AppendUint32(nil, uint32(m.Edge)), len(payload)/4)
	if !bytes.Equal(payload, want) && n.err == nil {
		n.err = fmt.Errorf("message %d of rank %d has other bytes", m.Edge, from)
	}
	if m.Kind == wire.Credit && (m.Addr == nil || *(*byte)(m.Addr) != byte(from)) && n.err == nil {
		n.err = fmt.Errorf("message %d of rank %d has another address", m.Edge, from)
	}
}

func (n *numbered) Place(levels.Rank, *wire.Message) []byte { return nil }

func (n *numbered) Sent(int32) {}

func (n *numbered) Fail(levels.Rank, error) {}

// say sends a random message.
func (n *numbered) say(t wire.Link, to levels.Rank, number int32) {
	m := wire.Message{Kind: wire.Eager, Edge: number}
	payload := bytes.Repeat(binary.NativeEndian.AppendUint32(nil, uint32(number)), rand.IntN(1+rand.IntN(1024)))
	if rand.IntN(20) == 0 {
		m.Kind, m.Addr, payload = wire.Credit, unsafe.Pointer(&n.put[0]), nil
	}
	m.Size = int64(len(payload))
	t.Post(to, &m, payload)
}

// A message goes by the inbox if it has an address, or if the ring is full or not made
// yet; else by the ring. A rank hears all of them in the order in which they were
// posted.
func TestRingAndInboxKeepOrder(t *testing.T) {
	const size, messages = 3, 3000
	for range 5 {
		h := &hub{pairs: newPairs(size)}
		for range size {
			h.inboxes = append(h.inboxes, newInbox())
		}
		all := make([]*numbered, size)
		var done sync.WaitGroup
		for r := range levels.Rank(size) {
			n := &numbered{heard: make([]int32, size), put: []byte{byte(r)}}
			all[r] = n
			link := &link{inbox: h.inboxes[r], hub: h, rank: r}
			done.Go(func() {
				left := func() (some bool) {
					for from, heard := range n.heard {
						some = some || levels.Rank(from) != r && heard < messages
					}
					return some
				}
				for said := int32(0); said < messages || left(); {
					for burst := rand.IntN(20); burst > 0 && said < messages; burst-- {
						for to := range levels.Rank(size) {
							if to != r {
								n.say(link, to, said)
							}
						}
						if said++; said == 100 {
							link.RingTo((r + 1) % size)
						}
					}
					if !link.Poll(n) {
						runtime.Gosched()
					}
				}
			})
		}
		done.Wait()
		for r, n := range all {
			if n.err != nil {
				t.Fatalf("rank %d: %v", r, n.err)
			}
		}
		if got := h.pairs.rings(); got != size {
			t.Errorf("%d pairs have rings, want %d", got, size)
		}
	}
}

// A rank doesn't sleep on a message that came by the ring, and is woken by one.
func TestRingWakes(t *testing.T) {
	h := &hub{pairs: newPairs(2), inboxes: []*inbox{newInbox(), newInbox()}}
	a, b := &link{inbox: h.inboxes[0], hub: h, rank: 0}, &link{inbox: h.inboxes[1], hub: h, rank: 1}
	a.RingTo(1)
	hears := &numbered{heard: make([]int32, 2)}
	for number := range int32(3) {
		if !b.Arm() {
			t.Fatal("with nothing on its way a rank can't sleep")
		}
		a.Post(1, &wire.Message{Kind: wire.Eager, Edge: number}, nil)
		if !b.IsRung() {
			t.Fatal("a rank that sleeps is not woken")
		}
		b.Park(nil)
		if b.Arm() {
			t.Error("a rank sleeps with a message in the ring")
		}
		if !b.Poll(hears) || hears.err != nil || hears.heard[0] != number+1 {
			t.Fatalf("message %d: rank 1 has heard %d, %v", number, hears.heard[0], hears.err)
		}
	}
}

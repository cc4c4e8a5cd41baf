//go:build linux

package executor

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/levels"
)

// letter is something sent over a link: a small message, or a large payload.
type letter struct {
	m       wire.Message
	payload []byte
	refused bool // the receiver has no place for it any more
}

// number is which letter a message is of.
func number(m *wire.Message) int32 {
	_, _, edge := m.Numbers()
	return edge
}

func (l *letter) large() bool { return l.m.Kind.IsLarge() }

// drawLetters makes what one side sends: the edge is its number.
func drawLetters(r *rand.Rand, n, largest int) []letter {
	letters := make([]letter, n)
	for i := range letters {
		l := &letters[i]
		l.m = wire.Message{
			Comm: wire.CommID(r.Uint64()), Digest: r.Uint32(), Refund: int32(r.IntN(100)),
		}
		switch r.IntN(4) {
		case 0:
			l.m.Kind = []wire.Kind{wire.Data, wire.Arrived}[r.IntN(2)]
			l.payload = make([]byte, r.IntN(1+r.IntN(largest)))
			l.refused = r.IntN(4) == 0
			l.m.Size = int64(len(l.payload))
		case 1:
			l.m.Kind = []wire.Kind{wire.Credit, wire.Want, wire.Offer, wire.Probe, wire.Bye}[r.IntN(5)]
			if l.m.Kind == wire.Bye {
				l.m.Broken = r.IntN(2) == 0
			} else {
				l.m.Size = int64(r.IntN(1 << 30))
			}
		default:
			l.m.Kind = []wire.Kind{wire.Eager, wire.Tagged}[r.IntN(2)]
			l.payload = make([]byte, r.IntN(1+r.IntN(4096+1)))
			l.m.Size = int64(len(l.payload))
		}
		l.m.SetNumbers(r.Uint32(), r.Uint32(), int32(i))
		for j := 0; j < len(l.payload); j += 1 + j/16 {
			l.payload[j] = byte(r.Uint32())
		}
	}
	return letters
}

// reader is an engine that compares what it is handed with what was sent.
type reader struct {
	want    []letter
	places  map[int32][]byte
	small   int // letters seen, in order
	large   int
	refunds int64
	left    int // puts of this side that have not left
	err     error
}

var _ wire.Sink = (*reader)(nil)

func (r *reader) failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) Deliver(_ levels.Rank, m *wire.Message, payload []byte) {
	r.refunds += int64(m.Refund)
	if m.Kind == wire.Return {
		return
	}
	if number(m) < 0 || int(number(m)) >= len(r.want) {
		r.failf("a message of kind %v and edge %d, which nobody sent", m.Kind, number(m))
		return
	}
	want := &r.want[number(m)]
	got, sent := *m, want.m
	got.Refund, sent.Refund = 0, 0
	if got != sent {
		r.failf("got %+v, want %+v", got, sent)
	}
	next := &r.small
	if want.large() {
		next = &r.large
		payload = r.places[number(m)]
		if want.refused {
			payload = want.payload
		}
	}
	for ; *next < int(number(m)); *next++ {
		if r.want[*next].large() == want.large() {
			r.failf("letter %d came before %d", number(m), *next)
		}
	}
	*next = int(number(m)) + 1
	if !bytes.Equal(payload, want.payload) {
		r.failf("letter %d came with another payload of %d bytes, want %d", number(m), len(payload), len(want.payload))
	}
}

func (r *reader) Place(_ levels.Rank, m *wire.Message) []byte {
	if number(m) < 0 || int(number(m)) >= len(r.want) || r.want[number(m)].refused {
		return nil
	}
	if r.places[number(m)] == nil {
		r.places[number(m)] = make([]byte, m.Size)
	}
	return r.places[number(m)][m.Offset:]
}

func (r *reader) Sent(int32) { r.left-- }

func (r *reader) Fail(levels.Rank, error) {}

// done reports whether everything has come and gone.
func (r *reader) done() bool {
	small, large := 0, 0
	for i := range r.want {
		if r.want[i].large() {
			large = i + 1
		} else {
			small = i + 1
		}
	}
	return r.left == 0 && r.small >= small && r.large >= large
}

// side is one end of a link with its letters.
type side struct {
	link interface {
		link
		poll(s wire.Sink) bool
	}
	sends []letter
	reader
}

// step sends a few letters, or moves on what is on its way. It reports whether
// there is nothing left to do.
func (s *side) step(r *rand.Rand) bool {
	for n := r.IntN(4); n > 0 && len(s.sends) > 0; n-- {
		l := &s.sends[0]
		s.sends = s.sends[1:]
		if l.large() {
			s.left++
			s.link.put(&l.m, l.payload, 0)
			continue
		}
		payload := bytes.Clone(l.payload)
		s.link.post(&l.m, payload)
		clear(payload) // post has copied it
	}
	s.link.flush(&s.reader)
	s.link.poll(&s.reader)
	return s.err != nil || len(s.sends) == 0 && !s.link.busy() && s.done()
}

// exchange lets both sides send everything; each in a goroutine of its own if
// parallel.
func exchange(t *testing.T, a, b *side, seed uint64, parallel bool) {
	t.Helper()
	b.want, a.want = a.sends, b.sends
	a.places, b.places = map[int32][]byte{}, map[int32][]byte{}
	var refunds [2]int64
	for i, s := range []*side{b, a} {
		for j := range s.want {
			refunds[i] += int64(s.want[j].m.Refund)
		}
	}
	ends := make(chan error, 2)
	r := rand.New(rand.NewPCG(seed, 1))
	if parallel {
		for i, s := range []*side{a, b} {
			own := rand.New(rand.NewPCG(seed, uint64(2+i)))
			go func() { // its end is waited for below
				for !s.step(own) {
					yieldThread()
				}
				ends <- s.err
			}()
		}
	} else {
		for steps := 0; ; steps++ {
			first, second := a, b
			if r.IntN(2) == 0 {
				first, second = b, a
			}
			if x, y := first.step(r), second.step(r); x && y {
				break
			}
			if steps > 10_000_000 {
				t.Fatalf("seed %d: stands still", seed)
			}
		}
		ends <- a.err
		ends <- b.err
	}
	if err := errors.Join(<-ends, <-ends); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if b.refunds != refunds[0] || a.refunds != refunds[1] {
		t.Fatalf("seed %d: refunds %d and %d, want %v", seed, b.refunds, a.refunds, refunds)
	}
}

func yieldThread() { runtime.Gosched() }

package wiretest

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

// Letter is something sent over a link: a small message, or a large payload.
type Letter struct {
	Message   wire.Message
	Payload   []byte
	IsRefused bool // the receiver has no place for it any more
}

// number is the number of a message's letter.
func number(m *wire.Message) int32 {
	_, _, edge := m.Numbers()
	return edge
}

// IsLarge reports whether the payload moves in parts.
func (l *Letter) IsLarge() bool { return l.Message.Kind.IsLarge() }

// DrawLetters makes the letters of one side: the edge is a letter's number.
func DrawLetters(r *rand.Rand, n, largest int) []Letter {
	letters := make([]Letter, n)
	for i := range letters {
		l := &letters[i]
		l.Message = wire.Message{
			Comm: wire.CommID(r.Uint64()), Digest: r.Uint32(), Refund: int32(r.IntN(100)),
		}
		switch r.IntN(4) {
		case 0:
			l.Message.Kind = []wire.Kind{wire.Data, wire.Arrived}[r.IntN(2)]
			l.Payload = make([]byte, r.IntN(1+r.IntN(largest)))
			l.IsRefused = r.IntN(4) == 0
			l.Message.Size = int64(len(l.Payload))
		case 1:
			l.Message.Kind = []wire.Kind{wire.Credit, wire.Want, wire.Offer, wire.Probe, wire.Bye}[r.IntN(5)]
			if l.Message.Kind == wire.Bye {
				l.Message.Broken, l.Message.Onward = r.IntN(2) == 0, r.IntN(2) == 0
			} else {
				l.Message.Size = int64(r.IntN(1 << 30))
			}
		default:
			l.Message.Kind = []wire.Kind{wire.Eager, wire.Tagged}[r.IntN(2)]
			l.Payload = make([]byte, r.IntN(1+r.IntN(4096+1)))
			l.Message.Size = int64(len(l.Payload))
		}
		l.Message.SetNumbers(r.Uint32(), r.Uint32(), int32(i))
		for j := 0; j < len(l.Payload); j += 1 + j/16 {
			l.Payload[j] = byte(r.Uint32())
		}
	}
	return letters
}

// Reader is an engine for tests: it compares messages and payloads with those sent.
type Reader struct {
	Want    []Letter
	Places  map[int32][]byte
	Small   int // letters seen, in order
	Large   int
	Refunds int64
	Left    int // puts of this side still on their way
	Err     error
}

var _ wire.Sink = (*Reader)(nil)

func (r *Reader) failf(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf(format, args...)
	}
}

// Deliver compares a message with the sent one.
func (r *Reader) Deliver(_ levels.Rank, m *wire.Message, payload []byte) {
	r.Refunds += int64(m.Refund)
	if m.Kind == wire.Return {
		return
	}
	if number(m) < 0 || int(number(m)) >= len(r.Want) {
		r.failf("a message of kind %v and edge %d, which nobody sent", m.Kind, number(m))
		return
	}
	want := &r.Want[number(m)]
	got, sent := *m, want.Message
	got.Refund, sent.Refund, got.Addr, sent.Addr = 0, 0, nil, nil
	if got != sent {
		r.failf("got %+v, want %+v", got, sent)
	}
	next := &r.Small
	if want.IsLarge() {
		next = &r.Large
		payload = r.Places[number(m)]
		if want.IsRefused {
			payload = want.Payload
		}
	}
	for ; *next < int(number(m)); *next++ {
		if r.Want[*next].IsLarge() == want.IsLarge() {
			r.failf("letter %d came before %d", number(m), *next)
		}
	}
	*next = int(number(m)) + 1
	if !bytes.Equal(payload, want.Payload) {
		r.failf("letter %d came with another payload of %d bytes, want %d", number(m), len(payload), len(want.Payload))
	}
}

// Place returns the place of a large payload, unless it is refused.
func (r *Reader) Place(_ levels.Rank, m *wire.Message) []byte {
	if number(m) < 0 || int(number(m)) >= len(r.Want) || r.Want[number(m)].IsRefused {
		return nil
	}
	if r.Places[number(m)] == nil {
		r.Places[number(m)] = make([]byte, m.Size)
	}
	return r.Places[number(m)][m.Offset:]
}

// Sent counts a Put that has left.
func (r *Reader) Sent(int32) { r.Left-- }

// Fail keeps why the link failed.
func (r *Reader) Fail(_ levels.Rank, err error) { r.failf("the link failed: %v", err) }

// IsDone reports whether everything has come and gone.
func (r *Reader) IsDone() bool {
	small, large := 0, 0
	for i := range r.Want {
		if r.Want[i].IsLarge() {
			large = i + 1
		} else {
			small = i + 1
		}
	}
	return r.Left == 0 && r.Small >= small && r.Large >= large
}

// Line is a link between two ranks, seen from one of them. Its methods are those of
// [wire.Link].
type Line interface {
	Post(m *wire.Message, payload []byte)
	Put(m *wire.Message, src []byte, token int32) bool
	Poll(s wire.Sink) bool
	Flush(s wire.Sink) (moved bool)
	Forget(what wire.Scope, s wire.Sink)
	// IsBusy reports whether something is still on its way out.
	IsBusy() bool
}

// Side is one end of a link with its letters.
type Side struct {
	Link  Line
	Sends []Letter
	Reader
}

// step sends a few letters, or moves on what is on its way. It reports whether
// there is nothing left to do.
func (s *Side) step(r *rand.Rand) bool {
	for n := r.IntN(4); n > 0 && len(s.Sends) > 0; n-- {
		l := &s.Sends[0]
		s.Sends = s.Sends[1:]
		if l.IsLarge() {
			if !s.Link.Put(&l.Message, l.Payload, 0) {
				s.Left++
			}
			continue
		}
		payload := bytes.Clone(l.Payload)
		s.Link.Post(&l.Message, payload)
		clear(payload) // post has copied it
	}
	s.Link.Flush(&s.Reader)
	s.Link.Poll(&s.Reader)
	return s.Err != nil || len(s.Sends) == 0 && !s.Link.IsBusy() && s.IsDone()
}

// Exchange lets both sides send everything; each in a goroutine of its own if
// parallel.
func Exchange(t *testing.T, a, b *Side, seed uint64, parallel bool) {
	t.Helper()
	b.Want, a.Want = a.Sends, b.Sends
	a.Places, b.Places = map[int32][]byte{}, map[int32][]byte{}
	var refunds [2]int64
	for i, s := range []*Side{b, a} {
		for j := range s.Want {
			m := &s.Want[j].Message
			refunds[i] += int64(m.Refund)
			if m.Kind.IsLarge() { // its credit had the place
				s.Places[number(m)] = make([]byte, m.Size)
				m.Addr = wire.Start(s.Places[number(m)])
			}
		}
	}
	ends := make(chan error, 2)
	r := rand.New(rand.NewPCG(seed, 1))
	if parallel {
		for i, s := range []*Side{a, b} {
			own := rand.New(rand.NewPCG(seed, uint64(2+i)))
			go func() { // its end is waited for below
				for !s.step(own) {
					runtime.Gosched()
				}
				ends <- s.Err
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
		ends <- a.Err
		ends <- b.Err
	}
	if err := errors.Join(<-ends, <-ends); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if b.Refunds != refunds[0] || a.Refunds != refunds[1] {
		t.Fatalf("seed %d: refunds %d and %d, want %v", seed, b.Refunds, a.Refunds, refunds)
	}
}

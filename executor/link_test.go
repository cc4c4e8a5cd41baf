//go:build linux

package executor

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tierflow/tierflow/levels"
)

// letter is something sent over a link: a small message, or a large payload.
type letter struct {
	m       message
	payload []byte
	refused bool // the receiver has no place for it any more
}

func (l *letter) large() bool { return l.m.kind.large() }

// drawLetters makes what one side sends: the edge is its number.
func drawLetters(r *rand.Rand, n, largest int) []letter {
	letters := make([]letter, n)
	for i := range letters {
		l := &letters[i]
		l.m = message{
			comm: CommID(r.Uint64()), seq: r.Uint32(), edge: int32(i), digest: r.Uint32(), refund: int32(r.IntN(100)),
		}
		switch r.IntN(4) {
		case 0:
			l.m.kind = []kind{dataKind, arrivedKind}[r.IntN(2)]
			l.payload = make([]byte, r.IntN(1+r.IntN(largest)))
			l.refused = r.IntN(4) == 0
			l.m.size = int64(len(l.payload))
		case 1:
			l.m.kind, l.m.size = []kind{creditKind, wantKind, offerKind, probeKind, byeKind}[r.IntN(5)], int64(r.IntN(1<<30))
		default:
			l.m.kind = []kind{eagerKind, taggedKind}[r.IntN(2)]
			l.payload = make([]byte, r.IntN(1+r.IntN(4096+1)))
			l.m.size = int64(len(l.payload))
		}
		l.m.setTurn(r.Uint32())
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

var _ sink = (*reader)(nil)

func (r *reader) failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) deliver(_ levels.Rank, m *message, payload []byte) {
	r.refunds += int64(m.refund)
	if m.kind == returnKind {
		return
	}
	if m.edge < 0 || int(m.edge) >= len(r.want) {
		r.failf("a message of kind %v and edge %d, which nobody sent", m.kind, m.edge)
		return
	}
	want := &r.want[m.edge]
	got, sent := *m, want.m
	got.refund, sent.refund = 0, 0
	if got != sent {
		r.failf("got %+v, want %+v", got, sent)
	}
	next := &r.small
	if want.large() {
		next = &r.large
		payload = r.places[m.edge]
		if want.refused {
			payload = want.payload
		}
	}
	for ; *next < int(m.edge); *next++ {
		if r.want[*next].large() == want.large() {
			r.failf("letter %d came before %d", m.edge, *next)
		}
	}
	*next = int(m.edge) + 1
	if !bytes.Equal(payload, want.payload) {
		r.failf("letter %d came with another payload of %d bytes, want %d", m.edge, len(payload), len(want.payload))
	}
}

func (r *reader) place(_ levels.Rank, m *message) []byte {
	if m.edge < 0 || int(m.edge) >= len(r.want) || r.want[m.edge].refused {
		return nil
	}
	if r.places[m.edge] == nil {
		r.places[m.edge] = make([]byte, m.size)
	}
	return r.places[m.edge][m.offset:]
}

func (r *reader) sent(int32) { r.left-- }

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
		poll(s sink) bool
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
			refunds[i] += int64(s.want[j].m.refund)
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

func yieldThread() { (&local{}).yield(0) }

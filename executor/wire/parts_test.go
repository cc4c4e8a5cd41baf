package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/tierflow/tierflow/levels"
)

// sink keeps what a link tells its engine.
type sink struct {
	Sink
	kinds   []Kind
	refunds int32
	sent    []int32
}

func (s *sink) Deliver(_ levels.Rank, m *Message, _ []byte) {
	s.kinds = append(s.kinds, m.Kind)
	s.refunds += m.Refund
}

func (s *sink) Sent(token int32) { s.sent = append(s.sent, token) }

// Parts of a payload follow each other without gaps. A payload may be given up between two of them.
func TestParts(t *testing.T) {
	const most = 10
	part := func(seq uint32, offset, size int64) Message {
		return Message{Kind: Data, Seq: seq, Offset: offset, Size: size}
	}
	type step struct {
		m    Message
		n    int64
		fits bool
	}
	for name, steps := range map[string][]step{
		"in one":              {{part(1, 0, 7), 7, true}, {part(2, 0, 10), 10, true}},
		"in three":            {{part(1, 0, 25), 10, true}, {part(1, 10, 25), 10, true}, {part(1, 20, 25), 5, true}, {part(2, 0, 3), 3, true}},
		"empty":               {{part(1, 0, 0), 0, true}, {part(1, 0, 0), 0, true}},
		"given up":            {{part(1, 0, 25), 10, true}, {part(2, 0, 25), 10, true}, {part(2, 10, 25), 10, true}},
		"shorter than it may": {{part(1, 0, 25), 9, false}},
		"a gap":               {{part(1, 0, 35), 10, true}, {part(1, 20, 35), 10, false}},
		"twice":               {{part(1, 0, 35), 10, true}, {part(1, 10, 35), 10, true}, {part(1, 10, 35), 10, false}},
		"of another":          {{part(1, 0, 25), 10, true}, {part(2, 10, 25), 10, false}},
		"of another size":     {{part(1, 0, 25), 10, true}, {part(1, 10, 26), 10, false}},
		"no beginning":        {{part(1, 10, 25), 10, false}},
		"behind the end":      {{part(1, 0, 10), 10, true}, {part(1, 10, 10), 0, false}},
	} {
		var p Parts
		for i, s := range steps {
			err := p.Follow(&s.m, s.n, most)
			if (err == nil) != s.fits || err != nil && !errors.Is(err, ErrProtocol) {
				t.Errorf("%s: part %d: %v, want that it fits: %v", name, i, err, s.fits)
			}
		}
	}
}

// The refund of a first part is delivered by itself, and the message is as before without it.
func TestGiveBack(t *testing.T) {
	s := &sink{}
	m := Message{Kind: Data, Comm: 3, Seq: 4, Refund: 50, Size: 9}
	GiveBack(s, 1, &m)
	if want := (Message{Kind: Data, Comm: 3, Seq: 4, Size: 9}); m != want || s.refunds != 50 || !slices.Equal(s.kinds, []Kind{Return}) {
		t.Errorf("%+v remains, %v were delivered with %d bytes", m, s.kinds, s.refunds)
	}
	GiveBack(s, 1, &m)
	if len(s.kinds) != 1 {
		t.Errorf("nothing is delivered as %v", s.kinds)
	}
}

// Payloads against credit leave the queue, with their refunds unless these have left. One without credit becomes a copy.
func TestDropBulk(t *testing.T) {
	var q Fifo[Outgoing]
	src := []byte("abc")
	for i, o := range []Outgoing{
		{Message: Message{Kind: Data, Comm: 1, Refund: 4}, Gone: 1},
		{Message: Message{Kind: Arrived, Comm: 1, Refund: 2}},
		{Message: Message{Kind: Data, Comm: 2, Refund: 8}},
		{Message: Message{Kind: Eager, Comm: 1, Refund: 16}},
		{Message: Message{Kind: Data, Comm: 1, Refund: 1}},
	} {
		o.Token, o.Src = int32(i), src
		q.Push(o)
	}
	s, posted := &sink{}, []Message(nil)
	DropBulk(&q, Scope{Comm: 1}, s, func(m *Message, _ []byte) { posted = append(posted, *m) })
	if !slices.Equal(s.sent, []int32{0, 1, 4}) {
		t.Errorf("dropped %v", s.sent)
	}
	if want := []Message{{Kind: Return, Refund: 3}}; !slices.Equal(posted, want) {
		t.Errorf("posted %+v, want %+v", posted, want)
	}
	clear(src) // the caller's again
	if left := q.All(); len(left) != 2 || !bytes.Equal(left[0].Src, []byte{0, 0, 0}) || string(left[1].Src) != "abc" {
		t.Errorf("left are %+v", left)
	}
}

// A scope is a communicator, or its runs from a number on, however often these have begun anew.
func TestScope(t *testing.T) {
	all, later := Scope{Comm: 1}, Scope{Comm: 1, Seq: 1<<32 - 2, Later: true}
	for _, c := range []struct {
		m          Message
		all, later bool
	}{
		{Message{Kind: Data, Comm: 1, Seq: 1<<32 - 3}, true, false},
		{Message{Kind: Data, Comm: 1, Seq: 1<<32 - 2}, true, true},
		{Message{Kind: Eager, Comm: 1, Seq: 5}, true, true},
		{Message{Kind: Tagged, Comm: 1}, true, false},
		{Message{Kind: Data, Comm: 2, Seq: 5}, false, false},
	} {
		if all.Has(&c.m) != c.all || later.Has(&c.m) != c.later {
			t.Errorf("%+v: in the communicator %v, among later runs %v", c.m, all.Has(&c.m), later.Has(&c.m))
		}
	}
}

// A batch hands over what was added, in order, and keeps its memory.
func TestBatch(t *testing.T) {
	var b Batch
	payload := []byte("first")
	fill := func() {
		for from := range levels.Rank(10) {
			b.Add(from, &Message{Kind: Eager, Seq: uint32(from)}, payload[:from%5])
		}
	}
	fill()
	clear(payload) // it has copies
	var got string
	b.Empty(func(from levels.Rank, m *Message, payload []byte) {
		got += fmt.Sprintf("%d%d%s ", from, m.Seq, payload)
	})
	if want := "00 11f 22fi 33fir 44firs 55 66f 77fi 88fir 99firs "; got != want || !b.IsEmpty() {
		t.Errorf("got %q, want %q; then empty: %v", got, want, b.IsEmpty())
	}
	if n := testing.AllocsPerRun(100, func() {
		fill()
		b.Empty(func(levels.Rank, *Message, []byte) {})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Memory for scratch begins on a cache line, and elements apart share none with others.
func TestMemoryOnLines(t *testing.T) {
	for _, n := range []int64{0, 1, 63, 64, 4097} {
		b := Aligned(n)
		if int64(len(b)) != n || int64(cap(b)) != n || n > 0 && uintptr(Start(b))%CacheLine != 0 {
			t.Errorf("%d bytes: %d of %d at %p", n, len(b), cap(b), Start(b))
		}
	}
	if b, _, err := Heap(1 << 62); err == nil {
		t.Errorf("%d bytes were had", len(b))
	}
	words := Apart[uint32](3)
	if len(words) != 3 || cap(words) != 3 {
		t.Errorf("%d of %d elements", len(words), cap(words))
	}
	if got := BytesAt(unsafe.Pointer(&words[0]), 4, 8); len(got) != 8 || Start(got) != unsafe.Pointer(&words[1]) {
		t.Errorf("%d bytes at %p, want 8 at %p", len(got), Start(got), &words[1])
	}
}

package shm

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/tierflow/tierflow/executor/wire"
)

// The arena against a list: pieces never overlap, and what is freed can be used again as one. What is
// handed out has its pages. Pages that nobody uses go, unless they are to stay.
func TestArenaProperty(t *testing.T) {
	const pages, longest = 2048, 600
	mem := wire.Aligned(pages * arenaAlign)
	rapid.Check(t, func(t *rapid.T) {
		var taken [pages]bool
		set := func(off, n int64, is bool) {
			if off%arenaAlign != 0 || n%arenaAlign != 0 {
				t.Fatalf("%d bytes at %d are not whole pages", n, off)
			}
			for i := off / arenaAlign; i < (off+n)/arenaAlign; i++ {
				taken[i] = is
			}
		}
		a := arena{
			mem:  mem,
			take: func(off, n int64) error { set(off, n, true); return nil },
			give: func(off, n int64) { set(off, n, false) },
		}
		var kept [pages]bool // taken when some were to stay
		type piece struct {
			b     []byte
			first int // page
			mark  byte
			free  func()
		}
		check := func(p piece) {
			for j := 0; j < len(p.b); j += arenaAlign {
				if p.b[j] != p.mark {
					t.Fatalf("piece %d was overwritten by %d", p.mark, p.b[j])
				}
				if !taken[p.first+j/arenaAlign] {
					t.Fatalf("piece %d has lost its page %d", p.mark, j/arenaAlign)
				}
			}
		}
		var live []piece
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 20).Draw(t, "what"); {
			case what == 0:
				a.keep()
				kept = taken
			case what < 10 && len(live) > 0:
				at := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				check(live[at])
				live[at].free()
				live = append(live[:at], live[at+1:]...)
			default:
				n := rapid.Int64Range(1, longest*arenaAlign).Draw(t, "n")
				b, free, err := a.alloc(n)
				if err != nil {
					if !strings.Contains(err.Error(), "full") {
						t.Fatal(err)
					}
					continue
				}
				if int64(len(b)) != n || uintptr(unsafe.Pointer(&b[0]))%wire.CacheLine != 0 {
					t.Fatalf("%d bytes at %p, want %d", len(b), &b[0], n)
				}
				for j := 0; j < len(b); j += arenaAlign {
					b[j] = byte(i)
				}
				live = append(live, piece{b, int(uintptr(unsafe.Pointer(&b[0]))-uintptr(unsafe.Pointer(&mem[0]))) / arenaAlign, byte(i), free})
			}
		}
		for _, p := range live {
			check(p)
			p.free()
		}
		if a.top != 0 || len(a.free) > 0 {
			t.Fatalf("all is free, but in pieces %v of %d", a.free, a.top)
		}
		left := 0
		for i := range taken {
			if kept[i] && !taken[i] {
				t.Fatalf("page %d was given back, and was to stay", i)
			}
			if taken[i] && int64(i)*arenaAlign >= a.kept {
				left++
			}
		}
		if left*arenaAlign >= givenBytes {
			t.Fatalf("all is free, and %d pages are left", left)
		}
	})
}

// allPages are pages that are there anyway.
var allPages = Pages{Take: func(int64, int64) error { return nil }}

func TestArenaErrors(t *testing.T) {
	no := errors.New("no memory")
	a := arena{mem: wire.Aligned(8 * arenaAlign), take: func(int64, int64) error { return nil }}
	if _, _, err := a.alloc(9 * arenaAlign); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("more than there is: %v", err)
	}
	if _, _, err := a.alloc(8 * arenaAlign); err != nil {
		t.Errorf("all there is: %v", err)
	}
	a = arena{mem: a.mem, top: 8 * arenaAlign, free: []extent{{arenaAlign, 2 * arenaAlign}}, take: a.take}
	for _, n := range []int64{2*arenaAlign + 1, 1 << 40, math.MaxInt64 - arenaAlign + 1, math.MaxInt64 - arenaAlign + 2, math.MaxInt64} {
		if _, _, err := a.alloc(n); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("no %d bytes in one piece", n)) {
			t.Errorf("%d bytes, more than is free: %v", n, err)
		}
	}
	if _, _, err := a.alloc(2 * arenaAlign); err != nil {
		t.Errorf("what is free after errors: %v", err)
	}
	a = arena{mem: a.mem, take: func(int64, int64) error { return no }}
	if _, _, err := a.alloc(1); !errors.Is(err, no) {
		t.Errorf("the commit's error is %v", err)
	}
	if a.top != 0 {
		t.Error("what can't be committed was taken")
	}
}

// A communicator's exposed memory is good until the communicator breaks on its owner, however
// many others do; when very many have it is not known.
func TestSegmentKnowsWhatBroke(t *testing.T) {
	s := NewSegment(wire.Aligned(Overhead(1)), 1, allPages)
	const mine, other = wire.CommID(7), wire.CommID(7 + 64*512)
	s.Leave(mine) // in a life before
	for round := range 3 * ages {
		since := s.age().Load()
		for range round % ages {
			s.Leave(other)
		}
		if !s.intact(mine, since) {
			t.Fatalf("after %d others have broken the communicator counts as broken", round%ages)
		}
		s.Leave(mine)
		if s.intact(mine, since) {
			t.Fatalf("a communicator that broke after %d others counts as whole", round%ages)
		}
		if !s.intact(mine, s.age().Load()) {
			t.Fatal("a communicator counts as broken that broke before")
		}
	}
	since := s.age().Load()
	for range ages {
		s.Leave(other)
	}
	if s.intact(mine, since) {
		t.Fatal("more have broken than are known, and the communicator counts as whole")
	}
}

// Lanes of different peers, and the arena behind them, never overlap.
func TestSegmentLayout(t *testing.T) {
	const peers = 5
	mem := wire.Aligned(Overhead(peers) + 4*arenaAlign)
	s := NewSegment(mem, peers, allPages)
	owner := make([]byte, len(mem))
	claim := func(b []byte, who byte) {
		t.Helper()
		from := uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(&mem[0]))
		for i := range b {
			if owner[int(from)+i] != 0 {
				t.Fatalf("byte %d belongs to %d and %d", int(from)+i, owner[int(from)+i], who)
			}
			owner[int(from)+i] = who
		}
	}
	word := func(p unsafe.Pointer) []byte { return unsafe.Slice((*byte)(p), 8) }
	who := byte(1)
	for i := range peers {
		claim(s.ring(i), who)
		claim(word(unsafe.Pointer(s.consumedRing(i))), who+1)
		claim(word(unsafe.Pointer(s.consumedParts(i))), who+2)
		for n := range uint64(streamParts) {
			claim(s.part(i, n), who+3)
		}
		who += 4
	}
	claim(unsafe.Slice((*byte)(unsafe.Pointer(s.sleeping())), 4), who)
	claim(unsafe.Slice((*byte)(unsafe.Pointer(s.leftFlag())), 4), who+2)
	claim(unsafe.Slice((*byte)(unsafe.Pointer(s.away())), 4), who+3)
	claim(word(unsafe.Pointer(s.age())), who+4)
	for n := range uint64(ages) {
		claim(word(unsafe.Pointer(s.broke(n))), who+5)
	}
	b, _, err := s.arena.alloc(4 * arenaAlign)
	if err != nil {
		t.Fatal(err)
	}
	claim(b, who+1)
	for _, p := range []unsafe.Pointer{wire.Start(mem), wire.Start(b), unsafe.Pointer(&mem[len(mem)-1])} {
		if got := s.at(s.offset(p)); got != p {
			t.Errorf("address %p comes back as %p", p, got)
		}
	}
	for _, c := range []struct {
		at   unsafe.Pointer
		n    int64
		want bool
	}{
		{wire.Start(mem), int64(len(mem)), true},
		{wire.Start(mem), int64(len(mem)) + 1, false},
		{unsafe.Pointer(&mem[len(mem)-1]), 1, true},
		{unsafe.Pointer(&mem[len(mem)-1]), 2, false},
		{nil, 1, false},
	} {
		if got := s.Holds(c.at, c.n); got != c.want {
			t.Errorf("%d bytes from %p on: %v, want %v", c.n, c.at, got, c.want)
		}
	}
	outside := wire.Aligned(64)
	if got := s.offset(wire.Start(outside)); got != 0 {
		t.Errorf("memory outside has offset %d", got)
	}
	for _, off := range []uint64{0, uint64(len(mem)) + 1, 1 << 62} {
		if got := s.at(off); got != nil {
			t.Errorf("offset %d is at %p", off, got)
		}
	}
}

// What is lent keeps the segment, and nothing else does: a piece that is not lent may be
// freed before or after.
func TestSegmentUnmapsWhenNothingIsLent(t *testing.T) {
	for _, test := range []struct {
		lent, before, after int // pieces; freed before close, and after
		want                bool
	}{
		{0, 0, 0, true},
		{2, 2, 0, true},
		{2, 1, 0, false},
		{2, 1, 1, true},
		{2, 0, 1, false},
		{2, 0, 2, true},
	} {
		s := NewSegment(wire.Aligned(Overhead(1)+8*arenaAlign), 1, allPages)
		_, other, err := s.arena.alloc(1)
		if err != nil {
			t.Fatal(err)
		}
		var frees []func()
		for range test.lent {
			_, free, err := s.Lend(1)
			if err != nil {
				t.Fatal(err)
			}
			frees = append(frees, free)
		}
		for _, free := range frees[:test.before] {
			free()
		}
		unmapped := 0
		s.Close(func() { unmapped++ })
		for _, free := range frees[test.before : test.before+test.after] {
			free()
		}
		other()
		if (unmapped == 1) != test.want || unmapped > 1 {
			t.Errorf("%+v: unmapped %d times", test, unmapped)
		}
	}
}

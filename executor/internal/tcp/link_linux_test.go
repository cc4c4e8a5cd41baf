//go:build linux

package tcp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/levels/join/seal/sealtest"
)

// sockets is a connected pair with buffers so small that frames are cut anywhere.
func sockets(t testing.TB, buffer int) (a, b int) {
	t.Helper()
	a, b = openSockets(t, buffer)
	t.Cleanup(func() {
		unix.Close(a)
		unix.Close(b)
	})
	return a, b
}

// openSockets is sockets, left to the caller to close.
func openSockets(t testing.TB, buffer int) (a, b int) {
	t.Helper()
	a, b = wiretest.Sockets(t)
	for _, fd := range []int{a, b} {
		if buffer > 0 {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, buffer); err != nil {
				t.Fatal(err)
			}
		}
	}
	return a, b
}

func TestLine(t *testing.T) {
	wiretest.RunLines(t, func(t *testing.T) (wiretest.Line, wiretest.Line) {
		a, b := NewLink(1, 4096), NewLink(0, 4096)
		mine, theirs := sockets(t, 0)
		a.Attach(mine)
		b.Attach(theirs)
		return a, b
	})
}

func TestFastLine(t *testing.T) {
	wiretest.RunLines(t, func(t *testing.T) (wiretest.Line, wiretest.Line) {
		a, b := NewLink(1, 4096), NewLink(0, 4096)
		a.pace.fast, b.pace.fast = true, true
		mine, theirs := sockets(t, 0)
		a.Attach(mine)
		b.Attach(theirs)
		return a, b
	})
}

func TestSealedLine(t *testing.T) {
	for _, fast := range []bool{false, true} {
		wiretest.RunLines(t, func(t *testing.T) (wiretest.Line, wiretest.Line) {
			a, b := NewLink(1, 4096), NewLink(0, 4096)
			a.pace.fast, b.pace.fast = fast, fast
			mine, theirs := sockets(t, 0)
			attach(t, a, mine, b, theirs, true)
			return a, b
		})
	}
}

// attach connects two links.
func attach(t testing.TB, a *Link, mine int, b *Link, theirs int, tls bool) {
	t.Helper()
	if !tls {
		a.Attach(mine)
		b.Attach(theirs)
		return
	}
	one, two, err := sealtest.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	a.AttachSealed(mine, one)
	b.AttachSealed(theirs, two)
}

// attachCrossed connects two links twice: a writes to the first connection, b to the second.
func attachCrossed(t testing.TB, a, b *Link, first, second [2]int, tls bool) {
	t.Helper()
	var s [4]*seal.Session
	if tls {
		var errs [2]error
		s[0], s[1], errs[0] = sealtest.Sessions()
		s[2], s[3], errs[1] = sealtest.Sessions()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
	}
	a.AttachSealed(first[0], s[0])
	b.AttachSealed(second[1], s[3])
	a.AttachSealed(second[0], s[2])
	b.AttachSealed(first[1], s[1])
}

func TestTCPLink(t *testing.T) {
	for _, parallel := range []bool{false, true} {
		for i := range 8 {
			seed := rand.Uint64()
			draw := rand.New(rand.NewPCG(seed, 0))
			a, b := NewLink(1, 4096), NewLink(0, 4096)
			a.pace.fast, b.pace.fast = draw.IntN(2) == 0, draw.IntN(2) == 0
			mine, theirs := sockets(t, []int{0, 5000, 30_000}[draw.IntN(3)])
			if i%2 == 0 { // both dialled at once: each writes to its own
				crossed, other := sockets(t, 5000)
				attachCrossed(t, a, b, [2]int{mine, theirs}, [2]int{crossed, other}, draw.IntN(2) == 0)
			} else {
				attach(t, a, mine, b, theirs, draw.IntN(2) == 0)
			}
			wiretest.Exchange(t, &wiretest.Side{Link: a, Sends: wiretest.DrawLetters(draw, 60, 3*wire.MaxFrame)}, &wiretest.Side{Link: b, Sends: wiretest.DrawLetters(draw, 60, 3*wire.MaxFrame)}, seed, parallel)
			if a.dead != nil || b.dead != nil {
				t.Fatalf("seed %d: links died: %v, %v", seed, a.dead, b.dead)
			}
		}
	}
}

// Letters posted before there is a connection leave when there is one.
func TestTCPLinkLateConnection(t *testing.T) {
	a, b := NewLink(1, 4096), NewLink(0, 4096)
	m := wire.Message{Kind: wire.Eager, Size: 3}
	a.Post(&m, []byte("abc"))
	if a.Flush(&wiretest.Reader{}) || !a.IsBusy() {
		t.Fatal("sent without a connection")
	}
	mine, theirs := sockets(t, 0)
	a.Attach(mine)
	b.Attach(theirs)
	a.Flush(&wiretest.Reader{})
	got := &wiretest.Reader{Want: []wiretest.Letter{{Message: m, Payload: []byte("abc")}}}
	if b.Poll(got); got.Err != nil || got.Small != 1 {
		t.Fatalf("%d letters came, %v", got.Small, got.Err)
	}
}

// stream is letters as bytes on the wire.
func stream(letters []wiretest.Letter) []byte {
	var b []byte
	for i := range letters {
		l := &letters[i]
		for off := 0; ; {
			n := min(len(l.Payload)-off, wire.MaxFrame)
			m := l.Message
			m.Offset = 0
			if l.IsLarge() {
				m.Offset = int64(off)
			}
			if off > 0 {
				m.Refund = 0
			}
			b = append(wire.AppendFrame(b, &m, n), l.Payload[off:off+n]...)
			if off += n; off == len(l.Payload) {
				break
			}
		}
	}
	return b
}

// The same bytes mean the same however they are cut: at one place each, and in
// pieces of every small size.
func TestTCPLinkCuts(t *testing.T) {
	letters := wiretest.DrawLetters(rand.New(rand.NewPCG(1, 2)), 8, 200)
	for i := range letters {
		if !letters[i].IsLarge() && len(letters[i].Payload) > 0 {
			letters[i].Payload = letters[i].Payload[:min(len(letters[i].Payload), 150)]
			letters[i].Message.Size = int64(len(letters[i].Payload))
		}
	}
	line := stream(letters)
	check := func(cut string, n int, pieces ...[]byte) {
		t.Helper()
		mine, theirs := openSockets(t, 0)
		l := NewLink(0, 4096)
		l.Attach(theirs)
		got := &wiretest.Reader{Want: letters, Places: map[int32][]byte{}}
		for _, p := range pieces {
			if _, err := unix.Write(mine, p); err != nil {
				t.Fatal(err)
			}
			l.Poll(got)
		}
		if got.Err != nil || l.dead != nil || !got.IsDone() {
			t.Fatalf("cut %s %d: %v, link %v, %d and %d letters", cut, n, got.Err, l.dead, got.Small, got.Large)
		}
		unix.Close(mine)
		unix.Close(theirs)
	}
	for at := range line {
		check("at", at, line[:at], line[at:])
	}
	for n := 1; n < 2*wire.FrameHeader; n++ {
		var pieces [][]byte
		for at := 0; at < len(line); at += n {
			pieces = append(pieces, line[at:min(at+n, len(line))])
		}
		check("every", n, pieces...)
	}
}

// What can't be is the link's end: one error, of the kind that says so.
func TestTCPLinkProtocol(t *testing.T) {
	frame := func(n int, m wire.Message) []byte { return wire.AppendFrame(nil, &m, n) }
	for name, bad := range map[string][]byte{
		"garbage":     bytes.Repeat([]byte("x"), 100),
		"kind 0":      make([]byte, wire.FrameHeader),
		"reserved":    append([]byte{byte(wire.Credit), 0, 1, 0}, make([]byte, wire.FrameHeader-4)...),
		"long":        frame(4097, wire.Message{Kind: wire.Eager, Size: 4097}),
		"huge":        frame(1<<31, wire.Message{Kind: wire.Data, Size: 1 << 40}),
		"size":        frame(5, wire.Message{Kind: wire.Eager, Size: 6}),
		"payload":     frame(5, wire.Message{Kind: wire.Credit, Size: 5}),
		"offset":      frame(0, wire.Message{Kind: wire.Data, Size: 5, Offset: 6}),
		"overrun":     frame(3, wire.Message{Kind: wire.Arrived, Size: 5, Offset: 3}),
		"negative":    frame(0, wire.Message{Kind: wire.Data, Size: -5}),
		"refund":      frame(0, wire.Message{Kind: wire.Return, Refund: -5}),
		"offset sent": frame(0, wire.Message{Kind: wire.Credit, Offset: 8}),
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := sockets(t, 0)
			l := NewLink(0, 4096)
			l.Attach(theirs)
			ok := wire.Message{Kind: wire.Want, Edge: 0}
			if _, err := unix.Write(mine, append(wire.AppendFrame(nil, &ok, 0), bad...)); err != nil {
				t.Fatal(err)
			}
			got := &wiretest.Reader{Want: []wiretest.Letter{{Message: ok}}}
			l.Poll(got)
			if !errors.Is(l.dead, wire.ErrProtocol) {
				t.Errorf("the link ended with %v", l.dead)
			}
			if got.Err != nil || got.Small != 1 {
				t.Errorf("%d letters before it, %v", got.Small, got.Err)
			}
			if l.Poll(got) || l.IsBusy() {
				t.Error("a dead link is read, or wants to be written to")
			}
		})
	}
}

// A connection that the peer resets is the link's end, seen by reading or writing.
func TestTCPLinkBroken(t *testing.T) {
	mine, theirs := openSockets(t, 0)
	defer unix.Close(mine)
	unix.Close(theirs)
	l := NewLink(0, 4096)
	l.Attach(mine)
	l.Post(&wire.Message{Kind: wire.Credit}, nil)
	l.Flush(&wiretest.Reader{})
	if !errors.Is(l.dead, unix.EPIPE) {
		t.Errorf("writing ended with %v", l.dead)
	}
	if l.IsBusy() {
		t.Error("a dead link wants to be written to")
	}
}

// After forget nothing is written to, or read from, the buffers of a communicator
// that failed, even in the middle of a frame; the frames behind still come.
func TestTCPLinkForget(t *testing.T) {
	for _, tls := range []bool{false, true} {
		forget(t, tls)
	}
}

func forget(t *testing.T, tls bool) {
	t.Helper()
	mine, theirs := sockets(t, 20_000)
	a, b := NewLink(1, 4096), NewLink(0, 4096)
	attach(t, a, mine, b, theirs, tls)
	const large = 3 * wire.MaxFrame
	failed, other := bytes.Repeat([]byte{1}, large), bytes.Repeat([]byte{2}, large)
	sender := &wiretest.Reader{Left: 2}
	want := []wiretest.Letter{{Message: wire.Message{Kind: wire.Data, Comm: 1, Edge: 0, Size: large}, Payload: failed}, {Message: wire.Message{Kind: wire.Data, Comm: 2, Edge: 1, Size: large}, Payload: other}}
	a.Put(&want[0].Message, failed, 0)
	a.Put(&want[1].Message, other, 1)
	a.Flush(sender)
	got := &wiretest.Reader{Want: want, Places: map[int32][]byte{}}
	b.Poll(got)
	place := got.Places[0]
	if len(place) == 0 || place[0] != 1 || place[wire.MaxFrame-1] != 0 {
		t.Fatal("the first frame should have come in part")
	}
	a.Forget(wire.Scope{Comm: 1}, sender)
	b.Forget(wire.Scope{Comm: 1}, got)
	got.Large = 1 // letter 0 won't come
	clear(failed)
	clear(place)
	for range 1000 {
		a.Flush(sender)
		b.Poll(got)
	}
	if got.Err != nil || got.Large != 2 || sender.Left != 0 || a.IsBusy() {
		t.Errorf("the other's letter: %v, %d came, %d puts left", got.Err, got.Large, sender.Left)
	}
	if !bytes.Equal(place, make([]byte, large)) {
		t.Error("the failed communicator's buffer was written to")
	}
}

// A payload without credit leaves after forget too, from a copy: it is charged, and
// only its receiver returns the charge. A dropped payload leaves its refund behind.
func TestTCPLinkForgetKeepsBudgets(t *testing.T) {
	for _, what := range []wire.Scope{{Comm: 1}, {Comm: 1, Seq: 5, Later: true}} {
		a, b := NewLink(1, 4096), NewLink(0, 4096)
		src := bytes.Repeat([]byte{1}, 4000)
		eager := wiretest.Letter{Message: wire.Message{Kind: wire.Eager, Comm: 1, Seq: 5, Size: 4000, Refund: 7}, Payload: bytes.Clone(src)}
		sender := &wiretest.Reader{Left: 2}
		a.Put(&wire.Message{Kind: wire.Data, Comm: 1, Seq: 6, Edge: 1, Size: 4000, Refund: 70}, src, 0)
		a.Put(&eager.Message, src, 1)
		a.Forget(what, sender)
		clear(src)
		mine, theirs := sockets(t, 0)
		a.Attach(mine)
		b.Attach(theirs)
		a.Flush(sender)
		got := &wiretest.Reader{Want: []wiretest.Letter{eager}}
		b.Poll(got)
		if got.Err != nil || got.Small != 1 || got.Refunds != 77 || sender.Left != 0 || a.IsBusy() {
			t.Errorf("forget %+v: %v, %d messages came and gave %d bytes back, %d puts left", what, got.Err, got.Small, got.Refunds, sender.Left)
		}
	}
}

// A link in use allocates nothing.
func TestTCPLinkAllocatesNothing(t *testing.T) {
	for _, tls := range []bool{false, true} {
		allocateNothing(t, tls)
	}
}

func allocateNothing(t *testing.T, tls bool) {
	t.Helper()
	mine, theirs := sockets(t, 0)
	a, b := NewLink(1, 4096), NewLink(0, 4096)
	attach(t, a, mine, b, theirs, tls)
	src, dst := make([]byte, 50_000), make([]byte, 50_000)
	got := &quiet{dst: dst}
	round := func() {
		a.Post(&wire.Message{Kind: wire.Eager, Size: 100}, src[:100])
		a.Put(&wire.Message{Kind: wire.Data, Size: int64(len(src))}, src, 0)
		for got.n = 0; got.n < 2; {
			a.Flush(got)
			b.Poll(got)
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}

// quiet counts what comes.
type quiet struct {
	dst []byte
	n   int
}

func (q *quiet) Deliver(levels.Rank, *wire.Message, []byte)  { q.n++ }
func (q *quiet) Place(_ levels.Rank, m *wire.Message) []byte { return q.dst[m.Offset:] }
func (q *quiet) Sent(int32)                                  {}
func (q *quiet) Fail(levels.Rank, error)                     {}

// Any bytes from the network, in two pieces.
func FuzzTCPLink(f *testing.F) {
	f.Add(stream(wiretest.DrawLetters(rand.New(rand.NewPCG(1, 2)), 5, 300)), 60)
	f.Add(wire.AppendFrame(nil, &wire.Message{Kind: wire.Data, Size: 1 << 40}, wire.MaxFrame), 3)
	f.Fuzz(func(t *testing.T, wire []byte, cut int) {
		mine, theirs := openSockets(t, 0)
		defer unix.Close(theirs)
		defer unix.Close(mine)
		l := NewLink(0, 4096)
		l.Attach(theirs)
		at := min(max(cut, 0), len(wire), 100_000)
		for _, p := range [][]byte{wire[:at], wire[at:]} {
			if _, err := unix.Write(mine, p); err != nil {
				t.Skip("more than the socket takes")
			}
			l.Poll(&wiretest.Reader{Places: map[int32][]byte{}})
		}
	})
}

// The end of a connection is the link's end: a peer that leaves has said so before.
// After this side has ended too it means nothing.
func TestTCPLinkEnds(t *testing.T) {
	frame := wire.AppendFrame(nil, &wire.Message{Kind: wire.Eager, Size: 3}, 3)
	for _, test := range []struct {
		wire []byte
		shut bool
		want error
	}{
		{append(frame, "abc"...), false, io.EOF},
		{append(frame, "ab"...), false, io.ErrUnexpectedEOF},
		{append(frame, "abc"...), true, nil},
		{wire.AppendFrame(nil, &wire.Message{Kind: wire.Data, Size: 100_000}, 100_000), false, io.ErrUnexpectedEOF},
	} {
		mine, theirs := openSockets(t, 0)
		l := NewLink(0, 4096)
		l.Attach(theirs)
		l.fds[0].shut = test.shut
		if _, err := unix.Write(mine, test.wire); err != nil {
			t.Fatal(err)
		}
		unix.Close(mine)
		for !l.fds[0].eof {
			l.Poll(&quiet{dst: make([]byte, 100_000)})
		}
		if !errors.Is(l.dead, test.want) {
			t.Errorf("%d bytes, then the end: %v, want %v", len(test.wire), l.dead, test.want)
		}
		unix.Close(theirs)
	}
}

// Parts of large payloads that don't follow each other, or are shorter than they
// could be, are no rank's.
func TestPartsFollow(t *testing.T) {
	const most = 10
	part := func(edge int32, offset int64) wire.Message {
		return wire.Message{Kind: wire.Data, Edge: edge, Size: 25, Offset: offset}
	}
	for name, test := range map[string]struct {
		parts []wire.Message
		n     []int64
		ok    bool
	}{
		"in order":         {[]wire.Message{part(1, 0), part(1, 10), part(1, 20), part(2, 0)}, []int64{10, 10, 5, 10}, true},
		"let go of":        {[]wire.Message{part(1, 0), part(2, 0)}, []int64{10, 10}, true},
		"one is missing":   {[]wire.Message{part(1, 0), part(1, 20)}, []int64{10, 5}, false},
		"one is short":     {[]wire.Message{part(1, 0)}, []int64{9}, false},
		"the last again":   {[]wire.Message{part(1, 0), part(1, 10), part(1, 20), part(1, 20)}, []int64{10, 10, 5, 5}, false},
		"another's middle": {[]wire.Message{part(1, 0), part(2, 10)}, []int64{10, 10}, false},
	} {
		var p wire.Parts
		var err error
		for i := range test.parts {
			if err != nil {
				t.Errorf("%s: part %d: %v", name, i-1, err)
			}
			err = p.Follow(&test.parts[i], test.n[i], most)
		}
		if (err == nil) != test.ok || err != nil && !errors.Is(err, wire.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A connection counts as fast once the peer has taken much in little time, and no longer
// when it takes nothing for long.
func TestPace(t *testing.T) {
	mine, theirs := sockets(t, 0)
	var p pace
	data, sink := make([]byte, lookEvery/2), make([]byte, 1<<20)
	send := func(taken bool) {
		n, err := unix.Write(mine, data)
		if err != nil {
			t.Fatal(err)
		}
		if taken {
			for got := 0; got < n; {
				k, err := unix.Read(theirs, sink)
				if err != nil {
					t.Fatal(err)
				}
				got += k
			}
		}
		p.watch(mine, n)
	}
	for range 1000 {
		if send(true); p.fast {
			break
		}
	}
	if !p.fast {
		t.Fatal("64 MB were taken at once, and the connection is not fast")
	}
	for range mostVain {
		p.last = p.last.Add(-time.Second)
		p.watch(mine, lookEvery)
	}
	if !p.fast {
		t.Fatalf("slow after %d looks of a second", mostVain)
	}
	p.last = p.last.Add(-time.Second)
	if p.watch(mine, lookEvery); p.fast {
		t.Fatalf("fast after %d looks of a second", mostVain+1)
	}
}

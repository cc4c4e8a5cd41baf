//go:build linux

package tcp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/executor/wire"
	"github.com/tierflow/tierflow/executor/wire/wiretest"
	"github.com/tierflow/tierflow/levels/join/seal"
	"github.com/tierflow/tierflow/levels/join/seal/sealtest"
)

// secretLetters are messages whose payload is easy to find: small ones and large ones.
func secretLetters() (letters []wiretest.Letter) {
	payload := bytes.Repeat([]byte("gradient"), 5000)
	for i, n := range []int{8, 4000, 40_000, 64, 40_000, 1000} {
		m := wire.Message{Kind: wire.Eager, Edge: int32(i), Size: int64(n)}
		if n > 4096 {
			m.Kind = wire.Data
		}
		letters = append(letters, wiretest.Letter{Message: m, Payload: payload[:n]})
	}
	return letters
}

// captured returns what a link writes to its socket for letters, its end included.
func captured(t testing.TB, session *seal.Session, letters []wiretest.Letter) (line []byte) {
	t.Helper()
	mine, theirs := sockets(t, 0)
	l := NewLink(1, 4096)
	l.AttachSealed(mine, session)
	sender := &wiretest.Reader{}
	read := func() {
		b := make([]byte, 1<<20)
		for {
			n, err := unix.Read(theirs, b)
			if err != nil || n == 0 {
				return
			}
			line = append(line, b[:n]...)
		}
	}
	for i := range letters {
		if m := &letters[i].Message; letters[i].IsLarge() {
			sender.Left++
			l.Put(m, letters[i].Payload, int32(sender.Left-1))
		} else {
			l.Post(m, letters[i].Payload)
		}
		for l.IsBusy() {
			l.Flush(sender)
			read()
		}
	}
	l.Shut()
	read()
	return line
}

// heard is what a link makes of bytes on the wire: whether all letters came, the first that
// was not as it was sent, and why the link ended.
func heard(t testing.TB, session *seal.Session, letters []wiretest.Letter, line []byte) (all bool, wrong, dead error) {
	t.Helper()
	mine, theirs := openSockets(t, 0)
	defer unix.Close(theirs)
	l := NewLink(0, 4096)
	l.AttachSealed(theirs, session)
	got := &wiretest.Reader{Want: letters, Places: map[int32][]byte{}}
	for len(line) > 0 {
		n, err := unix.Write(mine, line)
		if err != nil && err != unix.EAGAIN {
			t.Fatal(err)
		}
		line = line[max(n, 0):]
		l.Poll(got)
	}
	unix.Close(mine)
	for range 10 {
		l.Poll(got)
	}
	return got.IsDone(), got.Err, l.dead
}

// split cuts a stream of records.
func split(t testing.TB, line []byte) (records [][]byte) {
	t.Helper()
	for len(line) > 0 {
		n := 5 + int(binary.BigEndian.Uint16(line[3:]))
		records = append(records, line[:n])
		line = line[n:]
	}
	return records
}

// chatty is a reader that writes to the link whenever something has left.
type chatty struct {
	wiretest.Reader
	say func()
}

func (c *chatty) Sent(token int32) {
	c.Reader.Sent(token)
	c.say()
}

// TestSealedWriteDuringSent: whoever hears that a payload has left may write to the link before
// the write that told him is over.
func TestSealedWriteDuringSent(t *testing.T) {
	a, b := NewLink(1, 4096), NewLink(0, 4096)
	mine, theirs := sockets(t, 0)
	attach(t, a, mine, b, theirs, true)
	payload := bytes.Repeat([]byte{7}, 2000)
	var letters []wiretest.Letter
	for i := range 20 {
		m := wire.Message{Kind: wire.Eager, Edge: int32(2 * i), Size: 2000}
		large := wire.Message{Kind: wire.Data, Edge: int32(2*i + 1), Size: 10_000}
		letters = append(letters, wiretest.Letter{Message: m, Payload: payload}, wiretest.Letter{Message: large, Payload: bytes.Repeat([]byte{byte(i)}, 10_000)})
	}
	sender, next := &chatty{}, 0
	sender.say = func() {
		a.Post(&letters[next].Message, payload)
		a.Depart()
		next += 2
	}
	got := &wiretest.Reader{Want: letters, Places: map[int32][]byte{}}
	for i := 1; i < len(letters); i += 2 {
		sender.Left++
		a.Put(&letters[i].Message, letters[i].Payload, int32(sender.Left-1))
		for range 1000 {
			a.Flush(sender)
			b.Poll(got)
		}
	}
	b.Poll(got)
	if got.Err != nil || b.dead != nil || !got.IsDone() {
		t.Errorf("%v, the link ended with %v, all came: %t", got.Err, b.dead, got.IsDone())
	}
}

// TestPayloadIsHidden finds payloads in the bytes of a plain connection, and not in those of a
// sealed one.
func TestPayloadIsHidden(t *testing.T) {
	one, _, err := sealtest.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	letters := secretLetters()
	if !bytes.Contains(captured(t, nil, letters), []byte("gradient")) {
		t.Error("not found on a plain connection: the test can't fail")
	}
	line := captured(t, one, letters)
	if bytes.Contains(line, []byte("gradient")) || bytes.Contains(line, []byte("grad")) {
		t.Error("found on a sealed connection")
	}
	header := wire.AppendFrame(nil, &letters[0].Message, 8)
	if bytes.Contains(line, header[:16]) {
		t.Error("a frame's header was found on a sealed connection")
	}
}

// TestTampering lets somebody on the way do what he likes. On a plain connection nobody
// notices flipped bits of payloads; on a sealed one whatever is done ends the link, and
// no letter that was handed over is wrong.
func TestTampering(t *testing.T) {
	letters := secretLetters()
	plain := captured(t, nil, letters)
	flipped := slices.Clone(plain)
	flipped[wire.FrameHeader+3] ^= 4
	if _, wrong, dead := heard(t, nil, letters, flipped); wrong == nil || errors.Is(dead, seal.ErrDamaged) {
		t.Errorf("a bit flipped on a plain connection: %v, %v; the test can't fail", wrong, dead)
	}
	foreign, _, err := sealtest.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	other := split(t, captured(t, foreign, letters))
	draw := rand.New(rand.NewPCG(7, 7))
	type change struct {
		name string
		do   func(records [][]byte) [][]byte
	}
	changes := []change{
		{"repeat", func(r [][]byte) [][]byte { return slices.Insert(r, 3, r[2]) }},
		{"swap", func(r [][]byte) [][]byte { r[2], r[3] = r[3], r[2]; return r }},
		{"leave out", func(r [][]byte) [][]byte { return slices.Delete(r, 2, 3) }},
		{"leave the first out", func(r [][]byte) [][]byte { return r[1:] }},
		{"splice", func(r [][]byte) [][]byte { r[4] = other[4]; return r }},
		{"truncate before the end", func(r [][]byte) [][]byte { return r[:len(r)-1] }},
		{"truncate at a record", func(r [][]byte) [][]byte { return r[:3] }},
		{"truncate in a record", func(r [][]byte) [][]byte { r[3] = r[3][:7]; return r[:4] }},
		{"end early", func(r [][]byte) [][]byte { r[3] = r[len(r)-1]; return r[:4] }},
		{"inject a plain frame", func(r [][]byte) [][]byte { return slices.Insert(r, 2, plain[:wire.FrameHeader+8]) }},
		{"shorten a record", func(r [][]byte) [][]byte {
			r[2] = slices.Clone(r[2][:len(r[2])-1])
			binary.BigEndian.PutUint16(r[2][3:], uint16(len(r[2])-5))
			return r
		}},
		{"make data an end", func(r [][]byte) [][]byte { r[2] = slices.Clone(r[2]); r[2][0] = 21; return r }},
	}
	for at := 0; at < 8*(5+40); at += 3 { // of each region's first bytes; more are drawn
		changes = append(changes, change{fmt.Sprint("flip bit ", at, " of record ", at%4), func(r [][]byte) [][]byte {
			b := slices.Clone(r[at%4])
			b[at/8%len(b)] ^= 1 << (at % 8)
			r[at%4] = b
			return r
		}})
	}
	for range 100 {
		k, bit := draw.IntN(len(other)), draw.Uint32()
		changes = append(changes, change{fmt.Sprint("flip a bit of record ", k), func(r [][]byte) [][]byte {
			b := slices.Clone(r[k])
			at := int(bit/8) % len(b)
			b[at] ^= 1 << (bit % 8)
			r[k] = b
			return r
		}})
	}
	for _, c := range changes {
		a, b, err := sealtest.Sessions()
		if err != nil {
			t.Fatal(err)
		}
		line := bytes.Join(c.do(split(t, captured(t, a, letters))), nil)
		_, wrong, dead := heard(t, b, letters, line)
		if wrong != nil || dead == nil {
			t.Errorf("%s: %v; the link ended with %v", c.name, wrong, dead)
		}
		if !errors.Is(dead, seal.ErrDamaged) && !errors.Is(dead, seal.ErrTruncated) && !errors.Is(dead, io.ErrUnexpectedEOF) {
			t.Errorf("%s: the link ended with %v", c.name, dead)
		}
	}
	a, b, err := sealtest.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	all, wrong, dead := heard(t, b, letters, captured(t, a, letters))
	if !all || wrong != nil || !errors.Is(dead, io.EOF) {
		t.Errorf("untouched: all letters came: %t, %v; the link ended with %v", all, wrong, dead)
	}
}

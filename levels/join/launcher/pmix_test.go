package launcher

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// fence is where ranks wait for each other.
type fence struct {
	size int

	mu     sync.Mutex
	inside int
	open   chan struct{} // closed when all are inside
}

func (f *fence) enter() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = make(chan struct{})
	}
	open := f.open
	if f.inside++; f.inside == f.size {
		close(open)
		f.inside, f.open = 0, nil
	}
	return open
}

// pmixServer plays the PMIx server of a job of size ranks, as OpenPMIx 4.2.2 answers.
type pmixServer struct {
	fence
	stray bool // sends messages that nobody asked for

	values []byte // what rank 0 has committed: key, kind, value
	left   int
	over   chan struct{} // closed with the test
}

// serve answers one rank until it leaves.
func (s *pmixServer) serve(c net.Conn) error {
	defer c.Close()
	rank, err := acceptPMIx(c)
	if err != nil {
		return err
	}
	for {
		var header [pmixHeader]byte
		if _, err := io.ReadFull(c, header[:]); err != nil {
			return err
		}
		if index := binary.BigEndian.Uint32(header[:]); index != 40+rank {
			return fmt.Errorf("index %d of rank %d", index, rank)
		}
		tag := binary.BigEndian.Uint32(header[4:])
		body := make([]byte, binary.BigEndian.Uint32(header[8:]))
		if _, err := io.ReadFull(c, body); err != nil {
			return err
		}
		answer, last := s.answer(body)
		if answer == nil {
			return nil
		}
		if s.stray {
			c.Write(message(7, []byte("an event")))
		}
		c.Write(message(tag, answer))
		if last {
			return nil
		}
	}
}

// acceptPMIx reads the handshake and answers with an index of 40 + rank.
func acceptPMIx(c net.Conn) (rank uint32, err error) {
	var header [pmixHeader]byte
	if _, err := io.ReadFull(c, header[:]); err != nil {
		return 0, err
	}
	hello := make([]byte, binary.NativeEndian.Uint32(header[8:]))
	if _, err := io.ReadFull(c, hello); err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(hello, []byte("\x00job\x00"))
	if !ok || !bytes.HasPrefix(hello, []byte("native\x00\x00\x00\x00\x08")) || !bytes.HasSuffix(rest, []byte("3.2.4\x00v3\x00\x01hash\x00")) {
		return 0, fmt.Errorf("handshake %q", hello)
	}
	rank = binary.BigEndian.Uint32(rest)
	c.Write(binary.BigEndian.AppendUint32(make([]byte, 4), 40+rank))
	return rank, nil
}

// message puts a header in front of a body.
func message(tag uint32, body []byte) []byte {
	var p pack
	for _, word := range []uint32{0, tag, uint32(len(body)), 0} {
		p.u32(word)
	}
	return append(p.b, body...)
}

// answer returns the answer to a request; nil: the test is over.
func (s *pmixServer) answer(request []byte) (answer []byte, last bool) {
	u := &unpack{b: request}
	u.one()
	var p pack
	p.count(1)
	p.u32(0) // status
	switch u.take(1)[0] {
	case pmixCommit:
		u.take(4 + 1 + 4 + 1) // scope, kind of buffer
		values := u.take(u.size())
		s.mu.Lock()
		s.values = values
		s.mu.Unlock()
	case pmixFence:
		select {
		case <-s.enter():
		case <-s.over:
			return nil, true
		}
	case pmixGet:
		s.mu.Lock()
		object := pack{}
		object.count(1)
		object.text("job")
		object.u32(0)
		object.b = append(object.b, s.values...)
		s.mu.Unlock()
		p.count(1)
		p.size(len(object.b))
		p.b = append(p.b, object.b...)
	case pmixFinalize:
		s.mu.Lock()
		s.left++
		s.mu.Unlock()
		return p.b, true
	}
	return p.b, false
}

func (s *pmixServer) start(t *testing.T) []*session {
	s.over = make(chan struct{})
	t.Cleanup(func() { close(s.over) })
	all := make([]*session, s.size)
	for r := range all {
		mine, its := net.Pipe()
		go func() {
			if err := s.serve(its); err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("the server of rank %d: %v", r, err)
			}
		}()
		all[r] = &session{
			label: "PMIx",
			dial:  func(context.Context) (net.Conn, error) { return mine, nil },
			speak: func(c net.Conn) manager { return newPMIx(c, "job", levels.Rank(r), s.size) },
		}
		t.Cleanup(func() { mine.Close() })
	}
	return all
}

func TestPMIx(t *testing.T) {
	for _, stray := range []bool{false, true} {
		s := &pmixServer{fence: fence{size: 3}, stray: stray}
		all := s.start(t)
		for i := range 2 {
			onAll(t, all, func(r int, s *session) error { return shareText(t.Context(), r, s, fmt.Sprint("tfi1.text-", i)) })
		}
		onAll(t, all, func(_ int, s *session) error { return s.leave(t.Context()) })
		if s.left != 3 {
			t.Errorf("%d ranks have left", s.left)
		}
	}
}

func TestPMIxFenceNamesTheWait(t *testing.T) {
	s := &pmixServer{fence: fence{size: 3}}
	all := s.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := all[1].share(ctx, "")
	if want := "PMIx: fence: not all 3 ranks came in 0.2 s (the launcher does not say which): context deadline exceeded"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestPMIxURI(t *testing.T) {
	for uri, want := range map[string]string{
		"1039728640.0;tcp4://127.0.0.1:57993":  "tcp4 127.0.0.1:57993",
		"slurm.pmix.9.0.0;tcp6://[::1]:1;more": "tcp6 [::1]:1",
		"":                                     "", "a": "", "a;": "", "a;tcp4://": "", "a;tcp4://host:1": "", "a;tcp4://1.2.3.4": "", "a;tcp4://1.2.3.4:0": "",
		"a;tcp4://1.2.3.4:99999": "", "a;usock://x": "",
	} {
		network, at, err := parsePMIxURI(uri)
		if got := strings.TrimSpace(network + " " + at); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", uri, got, err, want)
		}
	}
}

// goodPMIx is all that rank 1's server says, up to the value.
func goodPMIx() []byte {
	s := &pmixServer{fence: fence{size: 1}}
	s.answer(commitRequest("tierflow-0", "text"))
	get, _ := s.answer(getRequest("job", "tierflow-0"))
	fence, _ := s.answer(fenceRequest("job"))
	return bytes.Join([][]byte{make([]byte, 8), message(pmixFirstTag, fence), message(pmixFirstTag+1, get)}, nil)
}

func hearPMIx(b []byte) (string, error) {
	p := newPMIx(heard{bytes.NewReader(b), io.Discard}, "job", 1, 4)
	if err := p.greet(); err != nil {
		return "", err
	}
	return p.spread("tierflow-0", "")
}

func TestPMIxHostile(t *testing.T) {
	good := goodPMIx()
	if got, err := hearPMIx(good); got != "text" {
		t.Fatalf("%q, %v", got, err)
	}
	for i := range good { // cut anywhere
		if got, err := hearPMIx(good[:i]); err == nil {
			t.Errorf("cut at %d: %q", i, got)
		}
	}
	spoil := func(at int, with ...byte) []byte {
		return append(append(bytes.Clone(good[:at]), with...), good[at+len(with):]...)
	}
	fence := 8 + pmixHeader // its status is behind a count of one
	get := fence + 8 + pmixHeader
	for _, c := range []struct {
		bytes []byte
		want  string
	}{
		{spoil(0, 0xff, 0xff, 0xff, 0xd2), "handshake: status -46"},
		{spoil(8+8, 0xff), "a message of 4278190088 bytes; allowed are 1048576"},
		{spoil(fence+4, 0xff, 0xff, 0xff, 0xd2), "fence: status -46"},
		{spoil(fence, 0, 0, 0, 2), "2 values where one belongs"},
		{spoil(get+4, 0xff, 0xff, 0xff, 0xd2), "get of tierflow-0: status -46"},
		{spoil(get+8, 0, 0, 0, 7), "7 values where one belongs"},
		{spoil(get+12, 0, 9), "a size of type 9"},
		{spoil(get+14, 0xff), "beyond all bounds"},
		{spoil(get+22+4, 0xff), "beyond all bounds"},
		{bytes.Replace(good, []byte("tierflow-0"), []byte("tierflow-1"), 1), "the answer doesn't have it"},
		{bytes.Replace(good, []byte("tierflow-0\x00\x00\x03"), []byte("tierflow-0\x00\x00\x04"), 1), "is a value of type 4; allowed is 3"},
		{append(bytes.Clone(good[:8]), bytes.Repeat(message(7, nil), pmixStray)...), "sends much, and no answer"},
	} {
		if got, err := hearPMIx(c.bytes); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %v, want %s", got, err, c.want)
		}
	}
}

func FuzzPMIxAnswer(f *testing.F) {
	f.Add(goodPMIx())
	f.Add(message(pmixFirstTag, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := hearPMIx(b)
		if err == nil && len(got) > pmixText {
			t.Errorf("a text of %d bytes", len(got))
		}
		u := &unpack{b: b}
		findText(u, "tierflow-0")
	})
}

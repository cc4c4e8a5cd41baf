package seal

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// pair is the two ends of a connection over TCP.
func pair(t testing.TB) (dialler, listener *Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	config, err := Anonymous("test")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { // waited for below
		var err error
		dialler, err = Client(a, config)
		done <- err
	}()
	listener, err = Server(b, config, nil)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	return dialler, listener
}

func TestConn(t *testing.T) {
	a, b := pair(t)
	if !bytes.Equal(a.Binding(), b.Binding()) || len(a.Binding()) != 32 {
		t.Errorf("the ends are bound by %x and %x", a.Binding(), b.Binding())
	}
	c, _ := pair(t)
	if bytes.Equal(a.Binding(), c.Binding()) {
		t.Error("two connections are bound by the same")
	}
	if s := a.State(); s.Version != tls.VersionTLS13 || s.DidResume {
		t.Errorf("agreed on %+v", s)
	}
	sent := bytes.Repeat([]byte("abc"), 50_000)
	go a.Write(sent) // ends when all is read below
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(b, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	b.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := b.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read without anything to read: %v", err)
	}
	b.SetReadDeadline(time.Time{})
	a.Write([]byte("x"))
	if n, err := b.Read(got); n != 1 || err != nil {
		t.Errorf("a read after one whose time was up: %d, %v", n, err)
	}
	a.CloseWrite()
	if _, err := b.Read(got); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
	b.Close()
	if _, err := a.Read(got); err != io.EOF {
		t.Errorf("the end of a closed one is %v", err)
	}
}

// TestWriteInPieces: writes whose time is up lose nothing.
func TestWriteInPieces(t *testing.T) {
	a, b := pair(t)
	sent := bytes.Repeat([]byte("0123456789"), 800_000)
	b.SetReadDeadline(time.Now().Add(time.Minute))
	came, full := make(chan []byte), make(chan bool)
	filled := sync.OnceFunc(func() { close(full) })
	defer filled()
	go func() {
		<-full
		got, _ := io.ReadAll(b) // what is missing is seen below
		came <- got
	}()
	for k := 0; k < len(sent); { // which is more than a socket holds
		a.SetWriteDeadline(time.Now().Add(time.Millisecond))
		n, err := a.Write(sent[k:min(len(sent), k+100_000)])
		k += n
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			filled()
		case err != nil:
			t.Fatal(err)
		}
	}
	a.SetWriteDeadline(time.Now().Add(time.Minute))
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := <-came; !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came, %d were sent, or others", len(got), len(sent))
	}
}

func TestTruncated(t *testing.T) {
	a, b := pair(t)
	a.NetConn().Close()
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, ErrTruncated) {
		t.Errorf("the end is %v", err)
	}
}

// TestDetach takes a connection apart while records of the link are there already.
func TestDetach(t *testing.T) {
	a, b := pair(t)
	a.Write([]byte("last"))
	s, raw, err := a.Detach()
	if err != nil {
		t.Fatal(err)
	}
	raw.Write(s.End(s.Seal(nil, []byte("first of the link"))))
	got := make([]byte, 100)
	// Both are in the socket, as loopback delivers within a write: whoever reads ahead has the link's.
	if n, err := io.ReadFull(b, got[:3]); err != nil || string(got[:n]) != "las" {
		t.Fatalf("got %q, %v", got[:n], err)
	}
	if _, _, err := b.Detach(); err == nil {
		t.Error("detached with a byte that nobody has read")
	}

	a, b = pair(t)
	a.Write([]byte("last"))
	if s, raw, err = a.Detach(); err != nil {
		t.Fatal(err)
	}
	raw.Write(s.End(s.Seal(nil, []byte("first of the link"))))
	io.ReadFull(b, got[:4])
	theirs, raw, err := b.Detach()
	if err != nil {
		t.Fatal(err)
	}
	n, _ := io.ReadAtLeast(raw, got, 17+2*Overhead)
	first, err := theirs.RecordLen(got[:n])
	if err != nil {
		t.Fatal(err)
	}
	plain := make([]byte, 100)
	if k, err := theirs.Open(plain, got[:first]); err != nil || string(plain[:k]) != "first of the link" {
		t.Errorf("opened %q, %v", plain[:k], err)
	}
	if _, err := theirs.Open(nil, got[first:n]); err != io.EOF || !theirs.HasEnded() {
		t.Errorf("the end is %v", err)
	}
}

func sessions(t testing.TB) (a, b *Session) {
	t.Helper()
	secrets := bytes.Repeat([]byte{1, 2}, secretLen)
	a, err := newSession(bytes.Clone(secrets), true)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = newSession(secrets, false); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// TestRenewal renews keys often.
func TestRenewal(t *testing.T) {
	a, b := sessions(t)
	a.out.limit, b.in.limit = 3, 3
	plain := make([]byte, 10)
	seen := map[string]bool{}
	for i := range 3000 {
		record := a.Seal(nil, []byte{byte(i)})
		if seen[string(record)] {
			t.Fatalf("record %d was seen before: a key or nonce is used twice", i)
		}
		seen[string(record)] = true
		if n, err := b.Open(plain, record); n != 1 || err != nil || plain[0] != byte(i) {
			t.Fatalf("record %d: %d bytes, %v", i, n, err)
		}
	}
	b.in.limit = 4 // one that renews elsewhere is not understood
	var err error
	for range 4 {
		_, err = b.Open(plain, a.Seal(nil, []byte{1}))
	}
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("a key that was not renewed opened a record: %v", err)
	}
}

// TestHeaders: no bit of a header can be changed, before a byte of the record has come.
func TestHeaders(t *testing.T) {
	for bit := range 8 * headerLen {
		a, b := sessions(t)
		a.Seal(nil, nil)
		record := a.Seal(nil, []byte("x"))
		first, err := b.RecordLen(record)
		if err == nil {
			t.Fatalf("the second record was taken for the first: %d", first)
		}
		b.in.next()
		if n, err := b.RecordLen(record); n != len(record) || err != nil {
			t.Fatalf("length %d of %d, %v", n, len(record), err)
		}
		record[bit/8] ^= 1 << (bit % 8)
		if _, err := b.RecordLen(record[:headerLen]); !errors.Is(err, ErrDamaged) {
			t.Errorf("bit %d: %v", bit, err)
		}
	}
}

func TestSessionAllocatesNothing(t *testing.T) {
	a, b := sessions(t)
	plain, record := make([]byte, MaxPlain), make([]byte, 0, MaxPlain+Overhead)
	if n := testing.AllocsPerRun(100, func() {
		record = a.Seal(record[:0], plain)
		if _, err := b.RecordLen(record); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Open(plain, record); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a record", n)
	}
}

// FuzzOpen opens whatever comes: an error, and never again.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("\x17\x03\x03\x00\x11aaaaaaaaaaaaaaaaa"))
	f.Add([]byte("\x15\x03\x03\x00\x10aaaaaaaaaaaaaaaa"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, s := sessions(t)
		if len(b) >= headerLen { // as if he could make headers
			b[1], b[2] = s.in.check(b[0], b[3], b[4])
		}
		n, err := s.RecordLen(b)
		if err != nil || n == 0 || n > len(b) {
			return
		}
		if _, err := s.Open(make([]byte, MaxPlain), b[:n]); err == nil {
			t.Fatalf("%x was opened", b)
		}
		if _, err := s.Open(make([]byte, MaxPlain), b[:n]); err == nil {
			t.Fatal("opened after an error")
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	s, _ := sessions(b)
	plain, record := make([]byte, MaxPlain), make([]byte, 0, MaxPlain+Overhead)
	b.SetBytes(MaxPlain)
	for b.Loop() {
		record = s.Seal(record[:0], plain)
	}
}

// BenchmarkRenewal seals one byte under a new key each time.
func BenchmarkRenewal(b *testing.B) {
	s, _ := sessions(b)
	s.out.limit = 1
	record := make([]byte, 0, 1+Overhead)
	for b.Loop() {
		record = s.Seal(record[:0], []byte{1})
	}
}

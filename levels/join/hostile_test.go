package join

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// lines counts log lines.
type lines struct {
	slog.Handler
	mu sync.Mutex
	n  int
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) Handle(context.Context, slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return nil
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// TestHostileConnections besets rank 0's rendezvous while the ranks join, then a
// rank's own listener while the job works, with 200 connections each: silent,
// garbage, half a greeting, a greeting without proof.
func TestHostileConnections(t *testing.T) {
	cs := configs(t, 3)
	log := &lines{}
	for r := range cs {
		cs[r].Log = slog.New(log)
	}
	defer beset(t, cs[0].Rendezvous[0])()
	began := time.Now()
	jobs := mustJoin(t, cs)
	t.Logf("joined after %v", time.Since(began))

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	defer beset(t, jobs[1].Peers[1].Addrs[0].String())()
	clocktest.Until(t, "strangers hold all slots, or have been refused", func() bool {
		jobs[1].door.mu.Lock()
		defer jobs[1].door.mu.Unlock()
		return len(jobs[1].door.waiting) >= gateSlots-1
	})
	clocktest.Until(t, "strangers have no more goroutines than there are slots: those of refused ones end", func() bool {
		return runtime.NumGoroutine()-goroutines <= gateSlots+10
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("heap grew by %d bytes", grown)
	}
	got := make(chan net.Conn, 1)
	jobs[1].Accept(func(_ levels.Rank, _ uint8, c net.Conn) { got <- c })
	began = time.Now()
	c, err := jobs[0].Dial(t.Context(), 1, 7)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > handshakeTime*3/4 {
		t.Errorf("dialed after %v: no stranger gave way", took)
	}
	c.Close()
	(<-got).Close()
	onAll(t, jobs, func(j *Job) error {
		_, err := j.Exchange(t.Context(), nil)
		return err
	})
	if n := log.count(); n > 4 { // one per listener and source
		t.Errorf("%d log lines for one source", n)
	}
}

// beset opens 200 hostile connections and returns their end.
func beset(t *testing.T, address string) func() {
	g := newGreeting(3, 2, 0)
	hello := g.append(nil)
	openings := [][]byte{nil, []byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n" + strings.Repeat("x", 4000)), hello[:20], hello}
	var conns []net.Conn
	for i := range 200 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(openings[i%len(openings)])
		conns = append(conns, c)
	}
	return func() {
		for _, c := range conns {
			c.Close()
		}
	}
}

// TestSlowLoris sends a greeting byte by byte; the handshake's deadline counts from
// its beginning, not from the last byte.
func TestSlowLoris(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{key: jobKey("one", nil), size: 2, freed: make(chan struct{}, 1), log: &refusals{log: slog.New(slog.DiscardHandler)}}
		c, conn := net.Pipe()
		v := g.enter(sourced{conn, "10.0.0.1"})
		began, ended := time.Now(), make(chan time.Time, 1)
		go func() {
			g.receive(v)
			ended <- time.Now()
		}()
		greeting := newGreeting(purposeTree, 0, 1)
		for _, b := range greeting.append(nil) {
			if _, err := c.Write([]byte{b}); err != nil {
				break
			}
			clocktest.Pause(t.Context(), 200*time.Millisecond)
		}
		if took := (<-ended).Sub(began); took != handshakeTime {
			t.Errorf("the handshake ended after %v, want %v", took, handshakeTime)
		}
	})
}

// A dialer that proves itself and uses another of its connections is not refused; one that says nonsense then is.
func TestUnusedConnection(t *testing.T) {
	for said, want := range map[string]int{"": 0, "?": 1} {
		refused := 0
		g := &gate{
			key: jobKey("one", nil), size: 2, freed: make(chan struct{}, 1), log: &refusals{log: slog.New(slog.DiscardHandler)},
			refused: func(greeting, net.Conn, error) { refused++ },
		}
		c, conn := net.Pipe()
		v := g.enter(sourced{conn, "10.0.0.1"})
		var received sync.WaitGroup
		received.Go(func() { g.receive(v) })
		if err := greet(c, g.key, newGreeting(purposeTree, 1, 0)); err != nil {
			t.Error(err)
		}
		if said != "" {
			c.Write([]byte(said)) // the other end reads it
		}
		c.Close()
		if received.Wait(); refused != want {
			t.Errorf("refused %d times after %q, want %d", refused, said, want)
		}
	}
}

// A connection that nobody has claimed when the tree stands is closed, and no part of it.
func TestUnclaimedConnection(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	j := &Job{building: make(chan arrival, 1)}
	j.building <- arrival{1, purposeTree, near}
	if err := j.growTree(t.Context(), &place{}); err != nil || len(j.edges) > 0 {
		t.Fatalf("%d edges, %v; want none", len(j.edges), err)
	}
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("reading from the other end: %v, want EOF", err)
	}
}

// A refused claim is in the name of a rank only if it can be that of a guest.
func TestNoteRefusal(t *testing.T) {
	conn, _ := net.Pipe()
	for g, want := range map[greeting]levels.Rank{
		{version: 1, from: 2}: 2, {version: 1, from: 0}: -1, {version: 1, from: 4}: -1, {version: 1, from: -3}: -1, {from: 2}: -1,
	} {
		h := &host{size: 4, events: make(chan event, 1)}
		h.noteRefusal(g, sourced{conn, "10.0.0.1"}, io.EOF)
		if e := <-h.events; e.from != want || !errors.Is(e.bad, io.EOF) {
			t.Errorf("%+v: in the name of %d, %v; want %d", g, e.from, e.bad, want)
		}
	}
}

// recorder keeps what a connection sends.
type recorder struct {
	net.Conn
	sent []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.sent = append(r.sent, b...)
	return r.Conn.Write(b)
}

// TestReplay plays a dialer's side of a successful handshake back.
func TestReplay(t *testing.T) {
	jobs := mustJoin(t, configs(t, 2))
	admitted := make(chan uint8, 2)
	jobs[1].Accept(func(_ levels.Rank, purpose uint8, c net.Conn) { c.Close(); admitted <- purpose })
	address := jobs[1].Peers[1].Addrs[0].String()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rec := &recorder{Conn: c}
	if err := errors.Join(greet(rec, jobs[0].key, newGreeting(9, 0, 1)), confirm(rec)); err != nil {
		t.Fatal(err)
	}
	if got := <-admitted; got != 9 {
		t.Fatalf("purpose %d", got)
	}

	replay, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer replay.Close()
	replay.Write(rec.sent)
	replay.SetReadDeadline(time.Now().Add(5 * time.Second))
	answer, err := io.ReadAll(replay)
	if len(answer) < replyLen+1 || verdict(answer[replyLen]) != wrongSecret {
		t.Errorf("listener answered %x (%v), want a refusal", answer, err)
	}
	select {
	case <-admitted:
		t.Error("the replayed handshake was let in")
	default:
	}
}

// TestHandshakeRefusals runs both sides over a pipe.
func TestHandshakeRefusals(t *testing.T) {
	key, other := jobKey("a", nil), jobKey("b", nil)
	old := newGreeting(1, 2, 0)
	old.version = 8
	for _, c := range []struct {
		name   string
		g      greeting
		key    []byte
		dialer error
		want   string // at the listener
	}{
		{"good", newGreeting(1, 2, 0), key, nil, ""},
		{"secret", newGreeting(1, 2, 0), other, ErrSecret, "job secrets differ: it claims to be rank 2"},
		{"version", old, key, ErrVersion, "it claims to be rank 2 and speaks version 8"},
		{"other rank", newGreeting(1, 2, 5), key, nil, "asks for rank 5; this is rank 0"},
		{"rank range", newGreeting(1, 9, 0), key, nil, "rank 9"},
		{"self", newGreeting(1, 0, 0), key, nil, "rank 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := net.Pipe()
			defer a.Close()
			dialed := make(chan error, 1)
			go func() {
				err := greet(a, c.key, c.g)
				if err == nil {
					err = confirm(a)
				}
				dialed <- err
			}()
			g, err := welcome(b, key, 0, 8, func() {}, func() {})
			b.Close()
			if c.want == "" && (err != nil || g != c.g) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("listener: %v, %+v", err, g)
			}
			if err := <-dialed; (err == nil) != (c.want == "") || c.dialer != nil && !errors.Is(err, c.dialer) {
				t.Errorf("dialer: %v", err)
			}
		})
	}
}

// TestImpostorListener has no secret: the dialer must not believe it.
func TestImpostorListener(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	go func() {
		io.ReadFull(b, make([]byte, greetingLen))
		r := reply{version: protocolVersion, verdict: welcomed}
		b.Write(r.append(nil))
		proof := make([]byte, proofLen)
		io.ReadFull(b, proof)
		b.Write(append([]byte{byte(welcomed)}, proof...)) // reflects the dialer's own proof
	}()
	if err := greet(a, jobKey("a", nil), newGreeting(1, 2, 0)); !errors.Is(err, ErrSecret) {
		t.Error(err)
	}
}

// Nobody between two ranks changes a bit of what one of them says until both have proved themselves.
func TestNothingIsChangedOnTheWay(t *testing.T) {
	key := jobKey("a", nil)
	g := newGreeting(1, 2, 0)
	parts := []struct {
		n        int
		toDialer bool
	}{{greetingLen, false}, {replyLen, true}, {proofLen, false}, {answerLen, true}}
	for at, changed := range parts {
		for i := range changed.n {
			near, dialer := net.Pipe()
			listener, far := net.Pipe()
			go func() { // the one between
				defer near.Close()
				defer listener.Close()
				for p, part := range parts {
					from, to, b := near, listener, make([]byte, part.n)
					if part.toDialer {
						from, to = listener, near
					}
					if _, err := io.ReadFull(from, b); err != nil {
						return
					}
					if p == at {
						b[i] ^= 1
					}
					if _, err := to.Write(b); err != nil {
						return
					}
				}
				io.Copy(listener, near) // the confirmation
			}()
			dialed := make(chan error, 1)
			go func() {
				err := greet(dialer, key, g)
				if err == nil {
					err = confirm(dialer)
				}
				dialer.Close()
				dialed <- err
			}()
			_, err := welcome(far, key, 0, 8, func() {}, func() {})
			far.Close()
			if greeted := <-dialed; greeted == nil || err == nil {
				t.Errorf("byte %d of message %d was changed: dialer %v, listener %v", i, at, greeted, err)
			}
		}
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	log := &lines{}
	c := refusals{log: slog.New(log)}
	for i := range 10_000 {
		c.add(fmt.Sprint("source ", i), io.EOF)
		c.add("source 0", io.EOF)
	}
	if log.n != refusalSources+1 || len(c.seen) != refusalSources+1 {
		t.Errorf("%d lines, %d sources kept", log.n, len(c.seen))
	}
}

func FuzzParseGreeting(f *testing.F) {
	g := newGreeting(3, 1, 2)
	f.Add(g.append(nil))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := parseGreeting(b); err == nil && string(g.append(nil)) != string(b) {
			t.Errorf("%x became %+v", b, g)
		}
	})
}

func FuzzParseReply(f *testing.F) {
	r := reply{version: 1, verdict: welcomed}
	f.Add(r.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseReply(b); err == nil && string(r.append(nil)) != string(b) {
			t.Errorf("%x became %+v", b, r)
		}
	})
}

func TestHeaderErrors(t *testing.T) {
	for want, f := range map[string]frame{
		"frame from rank 8; allowed are 0 to 7": {kind: frameBlob, from: 8},
		"frame to rank 9; allowed are -1 to 7":  {kind: frameBlob, to: 9},
		"frame of 6 bytes; allowed are 5":       {kind: frameBlob, payload: []byte("longer")},
	} {
		if _, _, err := parseHeader(f.encode()[:headerLen], 8, 5); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	whole := frame{kind: frameBlob, from: 3, to: everyone, seq: 9, payload: []byte("abc")}
	f.Add(whole.encode()[:headerLen])
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := parseHeader(b, 8, MaxPayload)
		if err != nil {
			return
		}
		if n > MaxPayload || h.from < 0 || h.from > 7 || h.to < -1 || h.to > 7 {
			t.Fatalf("let through %+v, %d bytes", h, n)
		}
		h.payload = make([]byte, n)
		if string(h.encode()[:headerLen]) != string(b) {
			t.Errorf("%x became %+v", b, h)
		}
	})
}

func FuzzParseTable(f *testing.F) {
	f.Add([]byte(`{"Common":[{"Version":4,"Host":{"Boot":"b","Name":"n","Net":""},"IPs":["127.0.0.1","::1"]}],"Ranks":[{"C":0,"T":[80],"P":7,"H":"aGk="}]}`))
	f.Add([]byte(`{"Common":[{"IPs":["127.0.0.1","::1"]}],"Ranks":[{"T":[80,81,82]}]}`))
	f.Add([]byte(`{"Job":"AAAAAAAAAAAAAAAAAAAAAA==","Up":{"Rank":0,"Size":9,"Addrs":["127.0.0.1:80"]},"Down":[4,5]}`))
	f.Add([]byte(`{"Rank":3,"Size":9,"Hello":"aGk="}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parsePeer(b); err == nil && (p.Rank < 0 || int(p.Rank) >= p.Size) {
			t.Errorf("let through %+v", p)
		}
		if tab, err := parseTable(b, 1); err == nil {
			if _, err := topologyOf(tab.Peers); err != nil {
				t.Error(err)
			}
		}
		if p, err := parsePlace(b, 3, 9); err == nil && (p.Up.Rank >= 3 || len(p.Down) > 5) {
			t.Errorf("let through %+v", p)
		}
	})
}

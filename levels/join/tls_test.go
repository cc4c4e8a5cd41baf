package join

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join/seal"
)

// tlsConfigs are configs with TLS, each rank on a node of its own.
func tlsConfigs(t testing.TB, n int) []Config {
	cs := configs(t, n)
	for r := range cs {
		cs[r].TLS, cs[r].Node = tlsJob, string(rune('a'+r))
	}
	return cs
}

// setTLS gives all ranks a value of TIERFLOW_TLS.
func setTLS(cs []Config, tls string) {
	for r := range cs {
		cs[r].TLS = tls
	}
}

// TestTLSJob joins with TLS, dials, exchanges and leaves.
func TestTLSJob(t *testing.T) {
	cs, log := tlsConfigs(t, 4), &said{}
	cs[0].Log = slog.New(slog.NewTextHandler(log, nil))
	jobs := mustJoin(t, cs)
	if !strings.Contains(log.String(), "sealed\" by=\"TLS 1.3, ") || strings.Contains(log.String(), "the launcher carried") {
		t.Errorf("rank 0 says %s", log)
	}
	if got := jobs[3].Secured(); !strings.HasPrefix(got, "TLS 1.3, X25519MLKEM768, AES-128-GCM") {
		t.Errorf("secured by %q", got)
	}
	got := make(chan net.Conn, 1)
	jobs[1].Accept(func(_ levels.Rank, _ uint8, c net.Conn) { got <- c })
	c, err := jobs[0].Dial(t.Context(), 1, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other := <-got
	defer other.Close()
	if _, ok := c.(*seal.Conn); !ok {
		t.Errorf("dialled a %T", c)
	}
	if _, ok := other.(*seal.Conn); !ok {
		t.Errorf("accepted a %T", other)
	}
	for _, e := range jobs[0].edges {
		if _, ok := e.conn.(*seal.Conn); !ok {
			t.Errorf("the edge to rank %d is a %T", e.peer, e.conn)
		}
	}
	go c.Write([]byte("hello")) // ends when it is read
	b := make([]byte, 5)
	if _, err := io.ReadFull(other, b); err != nil || string(b) != "hello" {
		t.Errorf("got %q, %v", b, err)
	}
	blob := bytes.Repeat([]byte("x"), MaxPayload)
	onAll(t, jobs, func(j *Job) error {
		all, err := j.Exchange(t.Context(), blob)
		if err == nil && !bytes.Equal(all[3], blob) {
			err = errors.New("another blob")
		}
		return err
	})
	onAll(t, jobs, func(j *Job) error { return j.Close(t.Context()) })
}

// TestTLSOfOneNode has nothing between nodes.
func TestTLSOfOneNode(t *testing.T) {
	cs := configs(t, 2)
	cs[0].TLS, cs[1].TLS = tlsJob, tlsJob
	if got := mustJoin(t, cs)[1].Secured(); got != "no connection between nodes" {
		t.Errorf("secured by %q", got)
	}
	if got := mustJoin(t, configs(t, 2))[1].Secured(); got != "" {
		t.Errorf("a plain job is secured by %q", got)
	}
}

// TestTLSDisagreement: whoever differs is named on both sides, and nothing stays plain.
func TestTLSDisagreement(t *testing.T) {
	t.Parallel()
	for _, modes := range [][2]string{{tlsOff, tlsJob}, {tlsJob, tlsOff}, {"", tlsJob}, {tlsJob, ""}} {
		t.Run(modes[0]+" and "+modes[1], func(t *testing.T) {
			t.Parallel()
			cs := configs(t, 2)
			cs[0].TLS, cs[1].TLS = modes[0], modes[1]
			theirs, mine := "rank 1 has TIERFLOW_TLS=job, this rank off", "the listener has TIERFLOW_TLS=off, this rank job"
			if modes[0] == tlsJob {
				theirs, mine = "rank 1 has TIERFLOW_TLS=off, this rank job", "the listener has TIERFLOW_TLS=job, this rank off"
			}
			disagree(t, cs, theirs, mine)
		})
	}
}

// TestTLSWrongSecret: TLS alone lets nobody in.
func TestTLSWrongSecret(t *testing.T) {
	t.Parallel()
	cs := tlsConfigs(t, 2)
	cs[1].Secret = strings.Repeat("another ", 8)
	_, errs := joinAll(t, cs, 10*time.Second)
	if !errors.Is(errs[1], ErrSecret) || errs[0] == nil || !strings.Contains(errs[0].Error(), "rank 1: 127.0.0.1: job secrets differ") {
		t.Errorf("%v; %v", errs[0], errs[1])
	}
}

func TestTLSConfig(t *testing.T) {
	for _, c := range []struct{ tls, secret, want string }{
		{"on", testSecret, `TLS "on"; allowed are off, job and cert=FILE,key=FILE,ca=FILE`},
		{"job", "s3cret", "a secret of 6 characters; allowed are at least 32"},
		{"job", NoSecret, `with secret "none"; allowed are secrets of at least 32`},
	} {
		cfg := Config{Rank: 0, Size: 2, Rendezvous: []string{"127.0.0.1:1"}, TLS: c.tls, Secret: c.secret}
		if _, err := Join(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("TLS=%s: %v, want %q", c.tls, err, c.want)
		}
	}
	j, err := Join(t.Context(), Config{TLS: tlsJob}) // nobody else is there
	if err != nil {
		t.Fatal(err)
	}
	j.Close(t.Context())
}

// comeBetween makes the last rank go to somebody in between, until the test ends. He handles each of its
// connections, beside one of his own to where it was to go.
func comeBetween(t *testing.T, cs []Config, handle func(c, up net.Conn)) {
	target := cs[0].Rendezvous[0]
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				if up, err := net.Dial("tcp", target); err == nil {
					defer up.Close()
					handle(c, up)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		conns.Wait()
	})
	cs[len(cs)-1].Rendezvous = []string{l.Addr().String()}
}

// forward moves bytes both ways until either side ends, and shows them to see.
func forward(a, b net.Conn, see func([]byte)) {
	var both sync.WaitGroup
	for _, way := range [2][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			buf := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(buf)
				see(buf[:n])
				if n > 0 {
					if _, werr := way[1].Write(buf[:n]); werr != nil {
						err = werr
					}
				}
				if err != nil {
					a.Close()
					b.Close()
					return
				}
			}
		})
	}
	both.Wait()
}

// TestTLSTerminatedOnTheWay puts somebody between two ranks who makes TLS with both and
// forwards what they say: they find out, and he sees nothing but greetings. Over plain TCP
// nobody finds out.
func TestTLSTerminatedOnTheWay(t *testing.T) {
	t.Parallel()
	for _, tls := range []string{tlsOff, tlsJob} {
		t.Run(tls, func(t *testing.T) {
			t.Parallel()
			cs := configs(t, 2)
			var mu sync.Mutex
			var seen []byte
			see := func(b []byte) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, b...)
			}
			comeBetween(t, cs, func(c, up net.Conn) {
				c.SetDeadline(time.Now().Add(5 * time.Second))
				up.SetDeadline(time.Now().Add(5 * time.Second))
				if tls == tlsOff {
					forward(c, up, see)
					return
				}
				// He has seen a ticket of rank 1 before.
				known, err := newGuard(&Config{TLS: tlsJob, Size: 2, Secret: testSecret})
				if err != nil {
					return
				}
				there, err := known.dial(t.Context(), up, 1)
				if err != nil {
					return
				}
				here, err := seal.Server(c, known.config, nil)
				if err != nil {
					return
				}
				forward(here, there, see)
			})
			setTLS(cs, tls)
			cs[1].Hello = []byte("known payload")
			jobs, errs := joinAll(t, cs, 10*time.Second)
			mu.Lock()
			defer mu.Unlock()
			if tls == tlsOff {
				if errs[0] != nil || errs[1] != nil || !bytes.Contains(seen, []byte(`"Hello"`)) {
					t.Errorf("%v, %v; the record was not seen on plain TCP: the test can't fail", errs[0], errs[1])
				}
				for _, j := range jobs {
					j.Close(context.Background())
				}
				return
			}
			if !errors.Is(errs[1], ErrSecret) || errs[0] == nil || !strings.Contains(errs[0].Error(), "job secrets differ: it claims to be rank 1") {
				t.Errorf("rank 0: %v; rank 1: %v", errs[0], errs[1])
			}
			if bytes.Contains(seen, []byte(`"Hello"`)) {
				t.Error("he saw a record")
			}
		})
	}
}

// TestTLSIsOpaque forwards bytes as they are: the ranks join, and nothing of what they say
// can be read.
func TestTLSIsOpaque(t *testing.T) {
	for _, tls := range []string{tlsOff, tlsJob} {
		cs := configs(t, 2)
		var mu sync.Mutex
		var seen []byte
		comeBetween(t, cs, func(c, up net.Conn) {
			forward(c, up, func(b []byte) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, b...)
			})
		})
		setTLS(cs, tls)
		mustJoin(t, cs)
		mu.Lock()
		found := bytes.Contains(seen, []byte(`"Hello"`)) || bytes.Contains(seen, []byte(magic))
		mu.Unlock()
		if found != (tls == tlsOff) {
			t.Errorf("TLS %s: records or greetings found on the way: %t", tls, found)
		}
	}
}

// TestTLSStrangers: silence, garbage, a plain greeting and TLS without a ticket neither come
// in nor keep others out.
func TestTLSStrangers(t *testing.T) {
	cs := tlsConfigs(t, 3)
	var strangers sync.WaitGroup
	defer strangers.Wait()
	defer beset(t, cs[0].Rendezvous[0])()
	for range 50 {
		c, err := net.Dial("tcp", cs[0].Rendezvous[0])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		config, err := seal.Anonymous(protocolJob)
		if err != nil {
			t.Fatal(err)
		}
		strangers.Go(func() {
			c.SetDeadline(time.Now().Add(3 * time.Second))
			if _, err := seal.Client(c, config); err == nil {
				t.Error("a hello without a ticket was answered")
			}
		})
	}
	mustJoin(t, cs)
}

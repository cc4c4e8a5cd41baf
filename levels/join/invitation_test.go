package join

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
)

// board shares as a launcher does: all get rank 0's text.
type board struct {
	text chan string
	size int

	mu     sync.Mutex
	shares int
	left   map[levels.Rank]int
}

// invitedConfigs are those of n ranks that a launcher started.
func invitedConfigs(t *testing.T, n int) ([]Config, *board) {
	b := &board{text: make(chan string, n), size: n, left: map[levels.Rank]int{}}
	cs := configs(t, n)
	cs[0].Listener.Close()
	for r := range cs {
		cs[r].Listener, cs[r].Rendezvous, cs[r].Secret = nil, nil, ""
		cs[r].Share = func(ctx context.Context, text string) (string, error) {
			if r == 0 {
				for range n {
					b.text <- text
				}
			}
			b.mu.Lock()
			b.shares++
			b.mu.Unlock()
			select {
			case text := <-b.text:
				return text, nil
			case <-ctx.Done():
				return "", fmt.Errorf("board: %w", context.Cause(ctx))
			}
		}
		cs[r].Leave = func(context.Context) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.left[levels.Rank(r)]++
			return nil
		}
	}
	return cs, b
}

// freePort is one that nobody listens on for now. It is below the ports that the kernel gives to others meanwhile.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(20_000 + rand.IntN(10_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port of 100 is free")
	return ""
}

func TestJoinByInvitation(t *testing.T) {
	for what, spoil := range map[string]func(r int, c *Config){
		"nothing given":    func(int, *Config) {},
		"secret given":     func(_ int, c *Config) { c.Secret = "mine" },
		"no secret wanted": func(r int, c *Config) { c.Secret = []string{NoSecret, ""}[min(r, 1)] },
		"two nodes":        func(r int, c *Config) { c.Node = fmt.Sprint(r % 2) },
		"all interfaces":   func(_ int, c *Config) { c.Interfaces = nil },
	} {
		t.Run(what, func(t *testing.T) {
			cs, b := invitedConfigs(t, 4)
			for r := range cs {
				spoil(r, &cs[r])
			}
			jobs := enterAll(t, cs)
			closeAll(t, jobs)
			closeAll(t, jobs)
			if b.shares != 4 || fmt.Sprint(b.left) != "map[0:1 1:1 2:1 3:1]" {
				t.Errorf("%d shares, left %v", b.shares, b.left)
			}
		})
	}
}

// A rank that knows the place to meet, and the secret, keeps to them.
func TestInvitationGivesWay(t *testing.T) {
	t.Parallel() // it mostly waits
	cs, _ := invitedConfigs(t, 3)
	at := "127.0.0.1:" + freePort(t) // rank 0 listens there itself
	for r := range cs {
		cs[r].Rendezvous, cs[r].Secret = []string{at}, "mine"
	}
	mustJoin(t, cs)
	cs, _ = invitedConfigs(t, 2)
	cs[0].Secret = "mine"
	_, errs := joinAll(t, cs, 6*time.Second)
	if err := fmt.Sprint(errs[1]); !strings.Contains(err, "rank 0 was given a secret and this rank was not") {
		t.Error(err)
	}
	cs, _ = invitedConfigs(t, 2)
	cs[0].Secret, cs[1].Secret = "mine", "its"
	if _, errs = joinAll(t, cs, 6*time.Second); !errors.Is(errs[1], ErrSecret) {
		t.Error(errs[1])
	}
}

// To whom a rank was lost the launcher is not told that all is well.
func TestLeaveAfterALoss(t *testing.T) {
	cs, b := invitedConfigs(t, 3)
	jobs := enterAll(t, cs)
	m := watch(jobs[0])
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	jobs[2].die()
	if !m.eventually(2*time.Minute, func() bool { return len(m.lost) > 0 }) {
		t.Fatal("no loss")
	}
	for _, j := range jobs {
		j.Close(ended)
	}
	if b.left[0] != 0 || b.left[2] != 0 {
		t.Errorf("left: %v", b.left)
	}
}

func TestLeaveThatFails(t *testing.T) {
	cs, _ := invitedConfigs(t, 2)
	refused := errors.New("the launcher is deaf")
	cs[1].Leave = func(context.Context) error { return refused }
	jobs := enterAll(t, cs)
	go jobs[0].Close(t.Context())
	if err := jobs[1].Close(t.Context()); !errors.Is(err, refused) {
		t.Error(err)
	}
}

func TestShareThatFails(t *testing.T) {
	t.Parallel()
	cs, _ := invitedConfigs(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := Join(ctx, cs[1]); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "join: board: ") {
		t.Error(err)
	}
	cs[1].Share = func(context.Context, string) (string, error) { return "tfi2.abc", nil }
	if _, err := Join(t.Context(), cs[1]); !errors.Is(err, ErrVersion) ||
		!strings.Contains(err.Error(), `rank 0's invitation has version "tfi2"; this rank knows "tfi1": all ranks must run the same tierflow`) {
		t.Error(err)
	}
}

// Where rank 0 has given up the ranks that it has invited do so too, at once: it was there.
func TestInvitationOfOneThatIsGone(t *testing.T) {
	t.Parallel()
	cs, _ := invitedConfigs(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Join(ctx, cs[0]); err == nil {
		t.Fatal("rank 0 has joined alone")
	}
	_, err := Join(t.Context(), cs[1])
	if p, ok := errors.AsType[*PeerError](err); !ok || p.Rank != 0 || !strings.Contains(err.Error(), "closed the rendezvous that it invited rank 1 to") {
		t.Error(err)
	}
}

func TestJoinTimeout(t *testing.T) {
	t.Parallel()
	cs := configs(t, 3)
	cs[0].Timeout = time.Second
	began := time.Now()
	_, err := Join(t.Context(), cs[0])
	if took := time.Since(began); took < 900*time.Millisecond || err == nil ||
		!strings.Contains(err.Error(), "ranks 1-2 did not join within") {
		t.Errorf("after %v: %v", took, err)
	}
	cs[1].Timeout = -1
	if _, err := Join(t.Context(), cs[1]); err == nil || !strings.Contains(err.Error(), "timeout -1ns") {
		t.Error(err)
	}
}

func TestInvitationText(t *testing.T) {
	host := Host{Boot: strings.Repeat("b", 36), Name: "host", Net: "net:[4026531840]"}
	full := invitation{Secret: strings.Repeat("s", 43), Host: &host}
	for i := range 12 {
		full.At = append(full.At, fmt.Sprintf("[2001:db8:1234:5678:9abc:def0:1234:%d]:65535", i))
	}
	for _, c := range []struct {
		limit, addresses int
		host             bool
	}{{1000, 8, true}, {700, 8, false}, {300, 3, false}} {
		text, err := full.text(c.limit)
		if err != nil || len(text) > c.limit || strings.ContainsAny(text, " \n=") {
			t.Errorf("%d bytes of %d: %v", len(text), c.limit, err)
		}
		got, err := parseInvitation(text)
		if err != nil || len(got.At) != c.addresses || (got.Host != nil) != c.host || got.Secret != full.Secret || got.At[0] != full.At[0] {
			t.Errorf("%d bytes: %+v, %v", c.limit, got, err)
		}
	}
	if _, err := full.text(100); err == nil {
		t.Error("fits in 100 bytes")
	}
}

func TestInvitationErrors(t *testing.T) {
	text, err := invitation{At: []string{"10.0.0.1:1"}, Secret: "secret"}.text(1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		if got, err := parseInvitation(text[:i]); err == nil {
			t.Errorf("cut at %d: %+v", i, got)
		}
	}
	for _, i := range []invitation{{}, {At: []string{"nowhere"}}, {At: []string{"h:0"}}, {At: []string{"h:1", ":2"}}} {
		text, err := i.text(1000)
		if err == nil {
			_, err = parseInvitation(text)
		}
		if err == nil {
			t.Errorf("%+v was taken", i)
		}
	}
}

// Loopback is the first address on rank 0's host, and out of question elsewhere.
func TestInvitedTo(t *testing.T) {
	here, err := thisHost()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{here.Name: "127.0.0.1:2", "another": "10.0.0.1:1"} {
		var c Config
		host := here
		host.Name = name
		c.orderAddresses(invitation{At: []string{"10.0.0.1:1", "127.0.0.1:2"}, Host: &host})
		if len(c.targets) == 0 || c.targets[0].address != want {
			t.Errorf("on %s first %v, want %s", name, c.targets, want)
		}
	}
}

func FuzzInvitation(f *testing.F) {
	for _, i := range []invitation{{At: []string{"10.0.0.1:1"}, Secret: "s"}, {At: []string{"[::1]:2"}, Host: &Host{Name: "h"}}} {
		text, _ := i.text(1000)
		f.Add(text)
	}
	f.Add(invitationPrefix + "e30")
	f.Fuzz(func(t *testing.T, text string) {
		i, err := parseInvitation(text)
		if err != nil {
			return
		}
		c := Config{Rank: 1, Size: 2, Rendezvous: i.At, Secret: "s"}
		if err := c.check(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		c.orderAddresses(i)
	})
}

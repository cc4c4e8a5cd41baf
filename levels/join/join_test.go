package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

const testSecret = "correct horse battery staple, and more of them"

// configs are those of n ranks that meet on loopback.
func configs(t testing.TB, n int) []Config {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	cs := make([]Config, n)
	for r := range cs {
		cs[r] = Config{
			Rank: levels.Rank(r), Size: n, Rendezvous: []string{l.Addr().String()}, Secret: testSecret,
			Interfaces: []string{"lo*"}, Hello: fmt.Appendf(nil, "hello from %d", r), Log: slog.New(slog.DiscardHandler),
		}
	}
	cs[0].Listener = l
	return cs
}

// joinAll joins every config that isn't nil-sized, concurrently.
func joinAll(t testing.TB, cs []Config, limit time.Duration) ([]*Job, []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	jobs, errs := make([]*Job, len(cs)), make([]error, len(cs))
	var all sync.WaitGroup
	for i, c := range cs {
		all.Go(func() { jobs[i], errs[i] = Join(ctx, c) })
	}
	all.Wait()
	return jobs, errs
}

// mustJoin joins and closes at the end of the test.
func mustJoin(t testing.TB, cs []Config) []*Job {
	t.Helper()
	jobs := enterAll(t, cs)
	t.Cleanup(func() { closeAll(t, jobs) })
	return jobs
}

// enterAll joins. The caller closes.
func enterAll(t testing.TB, cs []Config) []*Job {
	t.Helper()
	jobs, errs := joinAll(t, cs, 2*time.Minute)
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return jobs
}

func closeAll(t testing.TB, jobs []*Job) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // on a busy machine a broken connection takes its time
	defer cancel()
	onAll(t, jobs, func(j *Job) error { return j.Close(ctx) })
}

// onAll runs do on all ranks at once.
func onAll(t testing.TB, jobs []*Job, do func(*Job) error) {
	t.Helper()
	var all sync.WaitGroup
	for _, j := range jobs {
		all.Go(func() {
			if err := do(j); err != nil {
				t.Errorf("rank %d: %v", j.Rank, err)
			}
		})
	}
	all.Wait()
}

func TestJoin(t *testing.T) {
	for _, n := range []int{1, 2, 8, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			cs := configs(t, n)
			for r := range cs {
				cs[r].Node = fmt.Sprintf("n%d", r%3) // interleaved over three nodes
			}
			for _, j := range mustJoin(t, cs) {
				if j.Size != n || j.Topology.Size() != n || j.Topology.Depth() != 2 || j.Topology.Nodes() != min(n, 3) {
					t.Errorf("rank %d: size %d, topology %v", j.Rank, j.Size, j.Topology)
				}
				for r, p := range j.Peers {
					if want := fmt.Sprintf("hello from %d", r); string(p.Hello) != want || p.Rank != levels.Rank(r) || p.PID != os.Getpid() {
						t.Errorf("rank %d: peer %d is %+v", j.Rank, r, p)
					}
					if got, want := j.Topology.DomainName(levels.Rank(r), 0), fmt.Sprintf("n%d", r%3); got != want {
						t.Errorf("rank %d lives on %s, want %s", r, got, want)
					}
				}
			}
		})
	}
}

func TestSameHostIsOneNode(t *testing.T) {
	jobs := mustJoin(t, configs(t, 3))
	if !jobs[0].filtered {
		t.Error("a rank with given interfaces uses others")
	}
	if got := jobs[2].Topology.Nodes(); got != 1 {
		t.Errorf("%d nodes, want 1", got)
	}
}

// missing5 allows for a busy machine, on which rank 0 hears of the deadline late.
var missing5 = regexp.MustCompile(`^join: rank 5 did not join within [0-9.]+ s \(have 7 of 8\)$`)

func TestMissingRank(t *testing.T) {
	t.Parallel() // it mostly waits
	cs := configs(t, 8)
	cs = append(cs[:5], cs[6:]...)
	_, errs := joinAll(t, cs, 8*time.Second)
	for i, err := range errs {
		var j *JoinError
		if !errors.As(err, &j) || len(j.Ranks) != 1 || j.Ranks[0] != 5 ||
			!missing5.MatchString(err.Error()) {
			t.Errorf("config %d: %v", i, err)
		}
	}
}

func TestOwnDeadlineNamesTheMissing(t *testing.T) {
	t.Parallel() // it mostly waits
	cs := configs(t, 3)
	go Join(t.Context(), cs[0])
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	_, err := Join(ctx, cs[1])
	if !errors.Is(err, context.DeadlineExceeded) || namedBy(err) != 2 || !strings.Contains(err.Error(), "rank 0 still waits for rank 2 (have 2 of 3)") {
		t.Error(err)
	}
}

func TestWrongSecret(t *testing.T) {
	t.Parallel() // it mostly waits
	cs := configs(t, 3)
	cs[2].Secret = "guess"
	_, errs := joinAll(t, cs, 8*time.Second)
	if !errors.Is(errs[2], ErrSecret) {
		t.Errorf("rank 2: %v", errs[2])
	}
	for _, err := range errs[:2] {
		if err == nil || !strings.Contains(err.Error(), "rank 2 did not join") || !strings.Contains(err.Error(), "job secrets differ") {
			t.Errorf("others: %v", err)
		}
	}
}

func TestNoSecretIsExplicit(t *testing.T) {
	cs := configs(t, 2)
	cs[0].Secret, cs[1].Secret = NoSecret, NoSecret
	mustJoin(t, cs)
	cs[1].Secret = ""
	if _, err := Join(t.Context(), cs[1]); err == nil || !strings.Contains(err.Error(), "no secret") {
		t.Errorf("empty secret: %v", err)
	}
}

func TestDuplicateAndWrongSize(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Config){
		"rank 1 joined twice: ": func(c *Config) { c.Rank = 1 },
		"rank 2 (":              func(c *Config) { c.Size = 9 },
	} {
		cs := configs(t, 4)
		spoil(&cs[2])
		_, errs := joinAll(t, cs, 2*time.Minute)
		for i, err := range errs {
			var j *JoinError
			if !errors.As(err, &j) || !strings.HasPrefix(j.Reason, name) {
				t.Errorf("config %d: %v, want %s…", i, err, name)
			}
		}
	}
}

func TestBadConfigComplainsAtOnce(t *testing.T) {
	_, err := Join(t.Context(), Config{Rank: 9, Size: 3, Interfaces: []string{"a*b"}, Hello: make([]byte, MaxHello+1)})
	for _, want := range []string{"rank 9", "a*b", "hello", "no secret", "no rendezvous"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func TestExchangeOrder(t *testing.T) {
	cs := configs(t, 7)
	for r := range cs {
		cs[r].Node = fmt.Sprint(r / 2)
	}
	jobs := mustJoin(t, cs)
	onAll(t, jobs, func(j *Job) error {
		for i := range 20 {
			all, err := j.Exchange(t.Context(), fmt.Appendf(nil, "%d of %d", i, j.Rank))
			if err != nil {
				return err
			}
			for r, b := range all {
				if want := fmt.Sprintf("%d of %d", i, r); string(b) != want {
					return fmt.Errorf("exchange %d: rank %d's is %q, want %q", i, r, b, want)
				}
			}
		}
		return nil
	})
	if _, err := jobs[0].Exchange(t.Context(), make([]byte, MaxPayload+1)); err == nil {
		t.Error("too long a blob was taken")
	}
}

func TestExchangeContext(t *testing.T) {
	jobs := mustJoin(t, configs(t, 2))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := jobs[0].Exchange(ctx, nil)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Minute {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if _, again := jobs[0].Exchange(t.Context(), nil); !errors.Is(again, context.DeadlineExceeded) {
		t.Errorf("later call: %v", again)
	}
}

// A rank whose context is over before the call gives its part: the others don't wait for it.
func TestExchangeContextOver(t *testing.T) {
	jobs := mustJoin(t, configs(t, 4))
	why := errors.New("had enough")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, j := range jobs[1:] {
		if _, err := j.Exchange(over, fmt.Append(nil, j.Rank)); !errors.Is(err, why) {
			t.Errorf("rank %d: %v", j.Rank, err)
		}
	}
	all, err := jobs[0].Exchange(t.Context(), []byte("0"))
	if got := fmt.Sprintf("%s", all); err != nil || got != "[0 1 2 3]" {
		t.Errorf("rank 0 has heard %s, %v", got, err)
	}
}

func TestExchangeWithOneThatLeft(t *testing.T) {
	jobs := mustJoin(t, configs(t, 3))
	go jobs[2].Close(context.Background())
	_, err := jobs[1].Exchange(t.Context(), nil)
	var p *PeerError
	if !errors.As(err, &p) || p.Rank != 2 || !errors.Is(err, ErrLeft) {
		t.Error(err)
	}
}

// TestCloseInAHurry: even with an ended context the goodbye goes out.
func TestCloseInAHurry(t *testing.T) {
	jobs := mustJoin(t, configs(t, 2))
	m := watch(jobs[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := jobs[1].Close(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	jobs[1].closeErr = nil // mustJoin closes again and takes an error for a failure
	clocktest.Until(t, "rank 0 knows that rank 1 has left", func() bool { return errors.Is(jobs[0].Send(1, 1, nil), ErrLeft) })
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lost) > 0 {
		t.Errorf("lost: %v", m.lost)
	}
}

func TestJoinCancelled(t *testing.T) {
	cs := configs(t, 3)[:2]
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	time.AfterFunc(50*time.Millisecond, cancel)
	var all sync.WaitGroup
	for _, c := range cs {
		all.Go(func() {
			if _, err := Join(ctx, c); !errors.Is(err, context.Canceled) && !strings.Contains(fmt.Sprint(err), "rank 0 gave up") {
				t.Errorf("rank %d: %v", c.Rank, err)
			}
		})
	}
	all.Wait()
}

func TestCloseIsIdempotentAndNamesWhoStays(t *testing.T) {
	jobs := mustJoin(t, configs(t, 3))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := jobs[2].Close(ctx)
	var p *PeerError
	if !errors.As(err, &p) || p.Rank != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	jobs[2].closeErr = nil // mustJoin closes again and takes an error for a failure
	if err := jobs[2].Broadcast(1, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("broadcast after close: %v", err)
	}
	if _, err := jobs[2].Dial(t.Context(), 0, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("dial after close: %v", err)
	}
	if _, err := jobs[2].Exchange(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("exchange after close: %v", err)
	}
}

// TestNoLeaks joins and closes again and again; descriptors and goroutines must
// come back to where they were.
func TestNoLeaks(t *testing.T) {
	cycle := func() {
		cs := configs(t, 3)
		cs[1].Node = "other"
		jobs := enterAll(t, cs)
		onAll(t, jobs, func(j *Job) error {
			_, err := j.Exchange(t.Context(), nil)
			return err
		})
		closeAll(t, jobs)
	}
	cycle()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 50 {
		cycle()
	}
	var g, f int
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if clocktest.Await(ctx, func() bool { // the last goroutines may still be on their way out
		g, f = runtime.NumGoroutine(), openFiles(t)
		return g <= goroutines && f <= files
	}) == nil {
		return
	}
	var stacks bytes.Buffer
	buf := make([]byte, 1<<20)
	stacks.Write(buf[:runtime.Stack(buf, true)])
	t.Errorf("goroutines %d → %d, descriptors %d → %d\n%s", goroutines, g, files, f, &stacks)
}

func openFiles(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

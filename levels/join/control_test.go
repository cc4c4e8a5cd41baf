package join

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// mailbox collects what handlers get.
type mailbox struct {
	mu   sync.Mutex
	got  []string
	lost map[levels.Rank]error
}

func watch(j *Job) *mailbox {
	m := &mailbox{lost: map[levels.Rank]error{}}
	j.OnControl(func(from levels.Rank, kind uint8, payload []byte) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.got = append(m.got, fmt.Sprintf("%d/%d %s", from, kind, payload))
	})
	j.OnLost(func(r levels.Rank, err error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.lost[r] != nil {
			panic(fmt.Sprint("lost twice: ", r))
		}
		m.lost[r] = err
	})
	return m
}

// eventually waits for ok under m's lock.
func (m *mailbox) eventually(limit time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return clocktest.Await(ctx, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return ok()
	}) == nil
}

func TestBroadcastAndSend(t *testing.T) {
	const n = 9
	cs := configs(t, n)
	for r := range cs {
		cs[r].Node = fmt.Sprint(r % 4)
	}
	jobs := mustJoin(t, cs)
	boxes := make([]*mailbox, n)
	for r, j := range jobs {
		boxes[r] = watch(j)
	}
	onAll(t, jobs, func(j *Job) error {
		errs := []error{j.Broadcast(1, fmt.Appendf(nil, "to all"))}
		for to := range levels.Rank(n) {
			errs = append(errs, j.Send(to, 2, fmt.Appendf(nil, "to %d", to)))
		}
		return errors.Join(errs...)
	})
	for r, m := range boxes {
		var want []string
		for from := range n {
			if from != r {
				want = append(want, fmt.Sprintf("%d/1 to all", from))
			}
			want = append(want, fmt.Sprintf("%d/2 to %d", from, r))
		}
		if !m.eventually(2*time.Minute, func() bool { return len(m.got) >= len(want) }) {
			t.Errorf("rank %d got only %v", r, m.got)
		}
		slices.Sort(m.got)
		slices.Sort(want)
		if !slices.Equal(m.got, want) {
			t.Errorf("rank %d got %v, want %v", r, m.got, want)
		}
	}
	if err := jobs[0].Send(n, 1, nil); err == nil {
		t.Error("sent to a rank that doesn't exist")
	}
	if err := jobs[0].Broadcast(1, make([]byte, MaxPayload+1)); err == nil {
		t.Error("sent too long a payload")
	}
}

// Messages that come before there is a handler are kept for it.
func TestKeptForTheHandler(t *testing.T) {
	jobs := mustJoin(t, configs(t, 2))
	if err := jobs[0].Send(1, 7, []byte("early")); err != nil {
		t.Fatal(err)
	}
	onAll(t, jobs, func(j *Job) error { // behind the message
		_, err := j.Exchange(t.Context(), nil)
		return err
	})
	got := make(chan string, 1)
	jobs[1].OnControl(func(from levels.Rank, kind uint8, payload []byte) {
		got <- fmt.Sprintf("%d/%d %s", from, kind, payload)
	})
	select {
	case text := <-got:
		if text != "0/7 early" {
			t.Errorf("got %s", text)
		}
	case <-time.After(2 * time.Minute):
		t.Error("got nothing")
	}
}

// TestBusy: a handler that hangs fills the queues, and the sender is told.
func TestBusy(t *testing.T) {
	jobs := mustJoin(t, configs(t, 2))
	release := make(chan struct{})
	jobs[1].OnControl(func(levels.Rank, uint8, []byte) { <-release })
	defer close(release)
	payload := make([]byte, MaxPayload)
	for i := 0; ; i++ {
		err := jobs[0].Broadcast(1, payload)
		if errors.Is(err, ErrBusy) {
			break
		}
		if err != nil || i > 10*(edgeQueue+inboxSize) {
			t.Fatalf("after %d messages: %v", i, err)
		}
	}
}

func TestDialAndAccept(t *testing.T) {
	cs := configs(t, 3)
	cs[2].Node = "elsewhere"
	jobs := mustJoin(t, cs)
	early, err := jobs[0].Dial(t.Context(), 1, 5) // before the handler is set
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	type end struct {
		peer    levels.Rank
		purpose uint8
		conn    net.Conn
	}
	ends := make(chan end, 3)
	jobs[1].Accept(func(r levels.Rank, p uint8, c net.Conn) { ends <- end{r, p, c} })
	local, err := jobs[0].DialUnix(t.Context(), 1, 6)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for range 2 {
		e := <-ends
		mine := map[uint8]net.Conn{5: early, 6: local}[e.purpose]
		if _, isUnix := e.conn.(*net.UnixConn); isUnix != (e.purpose == 6) || e.peer != 0 {
			t.Errorf("got %T from rank %d for purpose %d", e.conn, e.peer, e.purpose)
		}
		go e.conn.Write([]byte("hi"))
		buf := make([]byte, 2)
		if _, err := mine.Read(buf); err != nil || string(buf) != "hi" {
			t.Errorf("%q, %v", buf, err)
		}
		e.conn.Close()
	}
	_, err = jobs[0].DialUnix(t.Context(), 2, 6)
	var p *PeerError
	if !errors.As(err, &p) || p.Rank != 2 || !strings.Contains(err.Error(), "rank 0 can't reach rank 2: ") {
		t.Errorf("unix socket to another node: %v", err)
	}
	for _, bad := range []struct {
		peer    levels.Rank
		purpose uint8
	}{{0, 1}, {3, 1}, {-1, 1}, {1, reserved}} {
		if _, err := jobs[0].Dial(t.Context(), bad.peer, bad.purpose); err == nil {
			t.Errorf("dial %v went through", bad)
		}
	}
}

func TestDialNamesWhatItTried(t *testing.T) {
	jobs := mustJoin(t, configs(t, 2))
	jobs[1].door.close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, err := jobs[0].Dial(ctx, 1, 1)
	var r *ReachError
	if !errors.As(err, &r) || len(r.At) == 0 ||
		!strings.HasPrefix(err.Error(), "rank 0 can't reach rank 1 at 127.0.0.1:") || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
}

const asRank = "JOIN_TEST_AS_RANK"

// TestMain is a rank when told so: it joins, says so on stdout and waits.
func TestMain(m *testing.M) {
	if os.Getenv(asRank) == "" {
		_ = flag.Set("test.parallel", "16") // parallel tests mostly wait for deadlines
		os.Exit(m.Run())
	}
	cfg, err := FromEnv(os.Getenv)
	if err == nil {
		var j *Job
		if j, err = Join(context.Background(), cfg); err == nil {
			fmt.Println("joined")
			j.OnLost(func(r levels.Rank, err error) { fmt.Println("lost", r) })
			select {}
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// TestKilledProcess runs ranks as processes and kills one: a leaf of the tree, then
// an inner node (rank 2 leads a node and is the way to rank 3).
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	for _, victim := range []levels.Rank{3, 2, 0} {
		t.Run(fmt.Sprint("rank ", victim), func(t *testing.T) {
			inProcess := []levels.Rank{0, 1}
			if victim == 0 {
				inProcess = []levels.Rank{1, 3} // they see it from two branches
			}
			jobs, kill := mixedJob(t, 4, inProcess, victim)
			boxes := []*mailbox{}
			for _, j := range jobs {
				boxes = append(boxes, watch(j))
			}
			waiting := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			go func() {
				_, err := jobs[0].Exchange(ctx, nil)
				waiting <- err
			}()
			began := time.Now()
			kill()
			for i, m := range boxes {
				if !m.eventually(2*time.Minute, func() bool { return m.lost[victim] != nil }) {
					t.Errorf("rank %d learned of %v", jobs[i].Rank, m.lost)
				} else if !errors.Is(m.lost[victim], ErrLost) {
					t.Error(m.lost[victim])
				}
			}
			t.Logf("all knew after %v", time.Since(began))
			var p *PeerError
			if err := <-waiting; !errors.As(err, &p) || p.Rank != victim {
				t.Errorf("exchange: %v", err)
			}
			if err := jobs[0].Send(victim, 1, nil); !errors.As(err, &p) || p.Rank != victim {
				t.Errorf("send: %v", err)
			}
			if _, err := jobs[0].Dial(t.Context(), victim, 1); !errors.As(err, &p) || p.Rank != victim {
				t.Errorf("dial: %v", err)
			}
		})
	}
}

// mixedJob runs some ranks here and the others as processes, two on each node; kill
// ends the victim's with SIGKILL.
func mixedJob(t *testing.T, n int, here []levels.Rank, victim levels.Rank) (jobs []*Job, kill func()) {
	cs := configs(t, n)
	var local []Config
	for r, c := range cs {
		c.Node = fmt.Sprint(r / 2)
		if slices.Contains(here, levels.Rank(r)) {
			local = append(local, c)
			continue
		}
		cmd := startRank(t, c)
		if levels.Rank(r) == victim {
			kill = func() { cmd.Process.Signal(syscall.SIGKILL) }
		}
	}
	jobs = enterAll(t, local)
	t.Cleanup(func() { closeSoon(jobs) })
	return jobs, kill
}

// closeSoon leaves without waiting for killed ranks' neighbours, which say no goodbye.
func closeSoon(jobs []*Job) {
	for _, j := range jobs {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		j.Close(ctx)
		cancel()
	}
}

// startRank starts this test binary as a rank; it is killed at the test's end.
func startRank(t *testing.T, c Config) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asRank+"=1",
		fmt.Sprintf("%s=%d", "TIERFLOW_RANK", c.Rank), fmt.Sprintf("%s=%d", "TIERFLOW_SIZE", c.Size),
		envRendezvous+"="+c.Rendezvous[0], envSecret+"="+c.Secret, envNode+"="+c.Node, envInterfaces+"=lo*")
	if c.Listener != nil {
		f, err := c.Listener.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = []*os.File{f}
		cmd.Env = append(cmd.Env, envRendezvousFD+"=3")
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("rank %d printed: %s", c.Rank, &out)
		}
	})
	return cmd
}

// TestLossCutsOff: after an inner node's death the others can't send below it.
func TestLossCutsOff(t *testing.T) {
	jobs, kill := mixedJob(t, 4, []levels.Rank{0, 1}, 2)
	m := watch(jobs[1])
	watch(jobs[0])
	kill()
	if !m.eventually(2*time.Minute, func() bool { return m.lost[2] != nil }) {
		t.Fatal("no loss")
	}
	var p *PeerError
	if err := jobs[0].Send(3, 1, nil); !errors.As(err, &p) || p.Rank != 3 || !strings.Contains(err.Error(), "cut off: rank 2") {
		t.Error(err)
	}
	if err := jobs[0].Broadcast(4, []byte("still here")); err != nil {
		t.Error(err)
	}
	if !m.eventually(2*time.Minute, func() bool { return slices.Contains(m.got, "0/4 still here") }) {
		t.Errorf("got %v", m.got)
	}
}

// Nobody finds a rank lost before the news is on its way: a program may end because of
// it, and the others would blame that one.
func TestLossIsToldBeforeItIsSeen(t *testing.T) {
	jobs, kill := mixedJob(t, 3, []levels.Rank{0, 1}, 2)
	m := watch(jobs[1])
	news := jobs[0].edgeTo(1).out
	news.mu.Lock()
	release := sync.OnceFunc(news.mu.Unlock)
	defer release()
	var queued atomic.Bool
	seen := make(chan bool, 1)
	go func() {
		_ = clocktest.Await(t.Context(), func() bool {
			var p *PeerError
			return errors.As(jobs[0].Send(2, 1, nil), &p) && errors.Is(p, ErrLost)
		})
		seen <- queued.Load()
	}()
	kill()
	clocktest.Pause(t.Context(), 200*time.Millisecond) // for those who would be too early
	queued.Store(true)
	release()
	if !<-seen {
		t.Error("rank 0 finds rank 2 lost before it has told rank 1")
	}
	jobs[0].LetOut()
	jobs[0].die()
	if !m.eventually(2*time.Minute, func() bool { return m.lost[0] != nil && m.lost[2] != nil }) {
		t.Errorf("rank 1 learned of %v", m.lost)
	}
}

// TestFreshJoin: the same process joins again through the inherited descriptor.
func TestFreshJoin(t *testing.T) {
	cs := configs(t, 2)
	f, err := cs[0].Listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	env := map[string]string{
		"TIERFLOW_RANK": "0", "TIERFLOW_SIZE": "2", envRendezvous: cs[0].Rendezvous[0], envSecret: testSecret,
		envRendezvousFD: fmt.Sprint(f.Fd()), envInterfaces: "lo*",
	}
	for range 3 {
		if cs[0], err = FromEnv(func(k string) string { return env[k] }); err != nil {
			t.Fatal(err)
		}
		jobs := enterAll(t, cs)
		closeAll(t, jobs)
	}
}

// The end of a process is told in the same words by who reads from it and by who writes to it.
func TestLossHasOneText(t *testing.T) {
	const ended = "was lost: its process ended without Close"
	failed := func(network string, no syscall.Errno) error {
		return &net.OpError{Op: "writev", Net: network, Err: os.NewSyscallError("writev", no)}
	}
	for _, c := range []struct {
		cause error
		want  string
	}{
		{io.EOF, ended},
		{failed("unix", syscall.EPIPE), ended},
		{failed("unix", syscall.ECONNRESET), ended},
		{failed("tcp", syscall.ECONNRESET), "was lost: writev tcp: writev: connection reset by peer"},
		{failed("unix", syscall.ETIMEDOUT), "was lost: writev unix: writev: connection timed out"},
	} {
		if err := (&edge{cause: c.cause}).loss(); err.Error() != c.want {
			t.Errorf("%v: %v; want %s", c.cause, err, c.want)
		}
	}
}

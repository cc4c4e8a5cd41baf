//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join/ports"
)

// TestEnvironment: four emulated nodes of two ranks; each line is one rank's whole contract.
func TestEnvironment(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TIERFLOW_PLAN", "shape=flat")
	t.Setenv("TIERFLOW_MACHINE", "off")
	t.Setenv("TIERFLOW_RANK", "99") // a launcher that is a rank itself
	r := run(t, Options{Hosts: "a:2,b:2,c:2,d:2", Launcher: launcherLocal, Dir: dir, Map: mapRoundRobin, Program: rankLine(t, "env")})
	r.want(t, 0)
	got := strings.Split(strings.TrimSpace(r.stdout.String()), "\n")
	slices.Sort(got)
	for rank := range 8 {
		fd, blame := "", 3
		if rank == 0 {
			fd = " RENDEZVOUS_FD=3"
			blame = 4
		}
		want := fmt.Sprintf("[%d] BLAME_FD=%d LOCAL_RANK=%d LOCAL_SIZE=2 MACHINE=off MANAGED=1 NODE=%c PLAN=shape=flat RANK=%d%s SECRET:64 SIZE=8 stdin=0 dir=%s",
			rank, blame, rank/4, 'a'+rank%4, rank, fd, dir)
		if len(got) != 8 || got[rank] != want {
			t.Fatalf("got\n%s\nwant for rank %d\n%s", strings.Join(got, "\n"), rank, want)
		}
	}
}

func TestNodeNames(t *testing.T) {
	for _, test := range []struct {
		opts Options
		want bool
	}{
		{Options{Ranks: 1}, false},
		{Options{Ranks: 1, NodeNames: true}, true},
		{Options{Hosts: "a:2,b:2", Ranks: 2, Launcher: launcherLocal}, false}, // b has no rank
	} {
		test.opts.Program = rankLine(t, "env")
		r := run(t, test.opts)
		r.want(t, 0)
		if got := strings.Contains(r.stdout.String(), " NODE="); got != test.want {
			t.Errorf("%+v: node named %v\n%s", test.opts, got, r.stdout.String())
		}
	}
}

func TestRendezvous(t *testing.T) {
	o := Options{Hosts: "a:1,b:2", Launcher: launcherLocal, Program: rankLine(t, "rendezvous")}
	for within, at := range map[string]string{"": "127.0.0.1:", "20000-20099": "127.0.0.1:200"} {
		o.Export = []string{"TIERFLOW_PORTS=" + within}
		r := run(t, o)
		r.want(t, 0)
		out := r.stdout.String()
		if !strings.HasPrefix(out, "[0] at "+at) || !strings.HasSuffix(out, " met [1 2]\n") {
			t.Errorf("ports %q: %q", within, out)
		}
	}
	for within, complaint := range map[string]string{
		"20000":  "TIERFLOW_PORTS=20000 has fewer ports than the 4 needed here: each of 3 ranks needs one",
		"20000-": `TIERFLOW_PORTS: ports "20000-"; allowed are FIRST-LAST`,
	} {
		o.Export = []string{"TIERFLOW_PORTS=" + within}
		run(t, o).want(t, statusLauncher, complaint)
	}
}

// TestRendezvousEndsWithRank0: nobody but rank 0 keeps its listener open.
func TestRendezvousEndsWithRank0(t *testing.T) {
	run(t, Options{Ranks: 2, Program: rankLine(t, "late")}).want(t, 0)
}

var portNumber = regexp.MustCompile(`:[0-9]+(,|$)`)

// TestRendezvousRemote: with ranks on other machines loopback must not be among the addresses.
func TestRendezvousRemote(t *testing.T) {
	m, err := listenRendezvous(ports.Range{}, nil, false)
	if err != nil {
		t.Skip("this machine has no address for others:", err)
	}
	defer m.file.Close()
	for _, a := range strings.Split(m.far, ",") {
		if strings.HasPrefix(a, "127.") || strings.HasPrefix(a, "[::1]") || strings.HasPrefix(a, "[fe80") {
			t.Errorf("address %s in %s", a, m.far)
		}
	}
	if m.near != m.far {
		t.Errorf("ranks on rank 0's host meet at %s, others at %s", m.near, m.far)
	}
	own := portNumber.ReplaceAllString(m.near, ":1$1")
	at, err := listenRendezvous(ports.Range{}, []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("2001:db8::7")}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer at.file.Close()
	const told = "203.0.113.7:1,[2001:db8::7]:1"
	far, near := portNumber.ReplaceAllString(at.far, ":1$1"), portNumber.ReplaceAllString(at.near, ":1$1")
	if far != told || near != own+","+told {
		t.Errorf("advertised: others meet at %s, want %s; those on rank 0's host at %s, want %s first", far, told, near, own)
	}
}

func TestSecretIsOnNoCommandLine(t *testing.T) {
	marked(t)
	r := run(t, Options{Ranks: 1, Program: rankLine(t, "secret")})
	r.want(t, 0)
	if r.stdout.String() != "[0] looked at true\n" {
		t.Error(r.stdout.String())
	}
}

// TestFirstFailure: the other ranks ignore SIGTERM and still are gone soon.
func TestFirstFailure(t *testing.T) {
	t.Parallel()
	mark := marked(t)
	r := run(t, Options{Hosts: "a:2,b:2", Launcher: launcherLocal, Program: rankLine(t, "fail", "2", "7", t.TempDir(), mark)})
	r.want(t, 7, "rank 2 on b: exit status 7; its last lines:\n  line 2\n", "  line 11")
	var failed *RankError
	if !errors.As(r.err, &failed) || failed.Rank != 2 || failed.Status != 7 || len(failed.Tail) != tailLines {
		t.Errorf("%+v", failed)
	}
	if !strings.Contains(r.stderr.String(), "[2] line 0\n") {
		t.Errorf("stderr lacks the first line: %q", r.stderr.String())
	}
	if left := processes(mark); len(left) > 0 {
		t.Errorf("processes %v outlive the job", left)
	}
}

func TestKilledRank(t *testing.T) {
	r := run(t, Options{Ranks: 3, Program: rankLine(t, "suicide")})
	r.want(t, 137, "rank 1 on localhost: ended by signal: killed (status 137)")
}

// TestKilledRankExplains: a rank is killed and so causes another's exit, but the news of it comes second.
func TestKilledRankExplains(t *testing.T) {
	grace := termGrace
	termGrace = time.Minute // rank 1 needs some time
	defer func() { termGrace = grace }()
	r := run(t, Options{Hosts: "a,b", Launcher: launcherLocal, Program: rankLine(t, "bereft", filepath.Join(t.TempDir(), "ready"))})
	r.want(t, 137, "rank 1 on b: ended by signal: killed (status 137)")
}

// begins is a program that says so, and goes on.
var begins = []string{"/bin/sh", "-c", "echo begun; exec sleep 1000"}

// whenBegun calls f when that many ranks have begun, by what the launcher has printed. The test waits for it.
func whenBegun(t *testing.T, out *buffer, ranks int, f func()) {
	var waiting sync.WaitGroup
	waiting.Go(func() {
		poll(t.Context(), func() bool { return strings.Count(out.String(), "begun") == ranks })
		f()
	})
	t.Cleanup(waiting.Wait)
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	out, r, over := &buffer{}, &result{}, make(chan time.Time)
	j, _, err := prepare(Options{Ranks: 4, Timeout: time.Hour, Program: begins}, nil, out, out)
	if err != nil {
		t.Fatal(err)
	}
	j.after = func(time.Duration) <-chan time.Time { return over }
	whenBegun(t, out, 4, func() { close(over) })
	j.loop(t.Context())
	r.status, r.err = j.result()
	r.want(t, statusTimeout, "ended after 1h0m0s: ranks 0-3 of 4 were running")
}

// One rank that runs on alone is named after a time, once.
func TestLastRank(t *testing.T) {
	t.Parallel()
	out, r, over := &buffer{}, &result{}, make(chan time.Time)
	j, _, err := prepare(Options{Ranks: 3, Program: []string{"/bin/sh", "-c", "test $TIERFLOW_RANK != 1 || while :; do sleep 0.05; done"}}, nil, out, out)
	if err != nil {
		t.Fatal(err)
	}
	j.after = func(d time.Duration) <-chan time.Time {
		if d != lastTime {
			return time.After(d)
		}
		close(over)
		return over
	}
	var scripted sync.WaitGroup
	scripted.Go(func() {
		<-over
		out.await(t, 1, "all others have ended")
		j.signals <- syscall.SIGTERM
	})
	j.loop(t.Context())
	scripted.Wait()
	r.status, r.err = j.result()
	r.want(t, statusSignal+int(syscall.SIGTERM), "ended by signal: terminated")
	if want := regexp.MustCompile(`(?m)^\[tierflow run\] rank 1 on localhost, process \d+, runs on, 10s after all others have ended$`); len(want.FindAllString(out.String(), -1)) != 1 {
		t.Errorf("%q, want %v once", out, want)
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	out, r := &buffer{}, &result{}
	whenBegun(t, out, 1, func() { cancel(errors.New("enough")) })
	r.status, r.err = Run(ctx, Options{Ranks: 1, Timeout: forever, Program: begins}, strings.NewReader(""), out, out)
	r.want(t, statusLauncher, "enough", "rank 0 of 1")
}

func TestProgramErrors(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("\x00\x01"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		program, dir string
		status       int
		want         string
	}{
		{"no-such-program", dir, statusNotFound, `host a: program "no-such-program" (working directory ` + dir + "): executable file not found"},
		{"./no-such", dir, statusNotFound, dir + "/no-such: no such file"},
		{"./plain", dir, statusNotRunning, `program "./plain"`},
		{"./garbage", dir, statusNotRunning, "host a: start rank 0"},
		{"true", dir + "/none", statusLauncher, "working directory: stat " + dir + "/none"},
	} {
		r := run(t, Options{Ranks: 2, Hosts: "a:2", Launcher: launcherLocal, Dir: test.dir, Program: []string{test.program}})
		r.want(t, test.status, test.want)
		if strings.Count(r.err.Error(), "\n") != 0 || r.stderr.Len() != 0 {
			t.Errorf("more than one line: %v\n%s", r.err, r.stderr.String())
		}
	}
}

// TestProgramIsRelativeToDir: a relative path counts from the ranks' directory, a bare name from PATH.
func TestProgramIsRelativeToDir(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), []byte("#!/bin/sh\necho $0 $1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := run(t, Options{Ranks: 1, Dir: dir, Program: []string{"./hello", "a b"}})
	r.want(t, 0)
	if got := r.stdout.String(); !strings.HasSuffix(got, "hello a b\n") {
		t.Errorf("%q", got)
	}
}

func TestAgentErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		agent []string
		wants []string
	}{
		{"missing", []string{"/no/such/agent"}, []string{"host a: agent (/no/such/agent)", "no such file"}},
		{"dies", []string{"/bin/sh", "-c", "echo boom >&2; exit 3"}, []string{"host a: agent (/bin/sh", "ended early: exit status 3; its last lines on stderr:\n  boom"}},
		{"quits", []string{"/bin/sh", "-c", "exit 0"}, []string{"ended early"}},
		{"babbles", []string{"/bin/sh", "-c", "echo Welcome to host a; cat >/dev/null"}, []string{"a start-up file must not print", "Welcome to host"}},
		{"silent", []string{"/bin/sh", "-c", "exec sleep 300"}, []string{"no answer within 200ms"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			limit := forever
			if test.name == "silent" {
				limit = 200 * time.Millisecond
			}
			r := run(t, Options{Hosts: "a", Launcher: launcherLocal, Agent: test.agent, AgentTimeout: limit, Program: []string{"true"}})
			r.want(t, statusLauncher, test.wants...)
		})
	}
}

// TestOneBrokenHostStartsNoRank: the agent of one host works, the other's does not.
func TestOneBrokenHostStartsNoRank(t *testing.T) {
	rsh := script(t, `host=$1; shift; test "$host" = b && { echo "connect to host b: refused" >&2; exit 255; }; exec "$@"`)
	r := run(t, Options{Hosts: "a,b", Launcher: rsh, Program: []string{"echo", "ran"}})
	r.want(t, statusLauncher, "host b: agent ("+rsh+" b ", "exit status 255", "connect to host b: refused")
	if r.stdout.Len() != 0 || !strings.Contains(r.stderr.String(), "[b] connect to host b: refused\n") {
		t.Errorf("stdout %q, stderr %q", r.stdout.String(), r.stderr.String())
	}
}

// TestRemoteShell: a launcher that gives its words to a shell, as ssh does, and an agent path that needs quoting.
func TestRemoteShell(t *testing.T) {
	rsh := script(t, `shift; exec env -i sh -c "$*"`)
	agent := filepath.Join(t.TempDir(), "an agent's path")
	if err := os.Symlink(self(t), agent); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TIERFLOW_PLAN", "p")
	t.Setenv("NOT_PASSED", "x")
	r := run(t, Options{Hosts: "a:2", Launcher: rsh, Agent: []string{agent, "agent"}, Program: []string{"/bin/sh", "-c", `echo "$1 $TIERFLOW_RANK $TIERFLOW_PLAN $NOT_PASSED"`, "x", "it's"}})
	r.want(t, 0)
	got := slices.Sorted(strings.Lines(r.stdout.String()))
	if strings.Join(got, "") != "[0] it's 0 p \n[1] it's 1 p \n" {
		t.Errorf("%q", got)
	}
}

// script writes an executable shell script and returns its path.
func script(t *testing.T, body string) string {
	path := filepath.Join(t.TempDir(), "rsh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPartialLines(t *testing.T) {
	r := run(t, Options{Ranks: 1, Program: rankLine(t, "partial")})
	r.want(t, 0)
	if r.stdout.String() != "[0] no newline\n" || r.stderr.String() != "[0] nor here\n" {
		t.Errorf("%q, %q", r.stdout.String(), r.stderr.String())
	}
	r = run(t, Options{Ranks: 1, NoPrefix: true, Program: rankLine(t, "partial")})
	if r.stdout.String() != "no newline" || r.stderr.String() != "nor here" {
		t.Errorf("%q, %q", r.stdout.String(), r.stderr.String())
	}
}

func TestLongLine(t *testing.T) {
	r := run(t, Options{Ranks: 1, Program: rankLine(t, "long")})
	if want := "[0] " + strings.Repeat("x", maxLine) + "\n[0] xxxxx\n"; r.stdout.String() != want {
		t.Errorf("%d bytes, want %d", r.stdout.Len(), len(want))
	}
}

// TestLinesNeverMix: every line of three ranks that write at full speed arrives whole, in its rank's order.
func TestLinesNeverMix(t *testing.T) {
	r := run(t, Options{Ranks: 3, Program: rankLine(t, "chatty")})
	r.want(t, 0)
	next := map[byte]int{}
	for line := range strings.Lines(r.stdout.String()) {
		rank := line[1]
		want := fmt.Sprintf("[%c] %d:%s\n", rank, next[rank], strings.Repeat(string(rank), 60))
		if line != want {
			t.Fatalf("got %q, want %q", line, want)
		}
		next[rank]++
	}
	if fmt.Sprint(next) != "map[48:2000 49:2000 50:2000]" {
		t.Error(next)
	}
}

func TestBrokenOutputEndsTheJob(t *testing.T) {
	t.Parallel()
	status, err := Run(t.Context(), Options{Ranks: 2, Program: rankLine(t, "stubborn")}, nil, brokenWriter{}, brokenWriter{})
	if status != statusLauncher || err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("status %d, %v", status, err)
	}
}

// TestLeftovers: a child that a rank leaves in its group ends with it, one that has left the group keeps nobody waiting.
func TestLeftovers(t *testing.T) {
	mark := marked(t)
	r := run(t, Options{Ranks: 2, Program: rankLine(t, "fork", mark)})
	r.want(t, 0)
	wantProcesses(t, mark, 0)
	r = run(t, Options{Ranks: 1, Program: rankLine(t, "daemon", mark)})
	r.want(t, 0)
	if len(processes(mark)) != 1 {
		t.Error("the job waited for a daemon")
	}
	for _, pid := range processes(mark) {
		kill(t, pid)
	}
}

// TestKilledAgent: kill -9 of an agent ends its ranks, and the job. Without a launcher on the same machine only the kernel
// can do it, so it is the ranks alone.
func TestKilledAgent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		launcher, program string
		processes         int
	}{
		{launcherLocal, "parent", 8},
		{script(t, `shift; exec "$@"`), "stubborn", 4},
	} {
		mark := marked(t)
		ended := make(chan *result)
		go func() {
			r := &result{}
			opts := Options{Hosts: "a:2,b:2", Launcher: test.launcher, Program: rankLine(t, test.program, mark)}
			r.status, r.err = Run(t.Context(), opts, nil, &r.stdout, &r.stderr)
			ended <- r
		}()
		wantProcesses(t, mark, test.processes)
		kill(t, parentOf(t, processes(mark)[0]))
		(<-ended).want(t, statusLauncher, "the agent ended early: signal: killed")
		wantProcesses(t, mark, 0)
	}
}

// With Min the job goes on as long as enough ranks have not failed.
func TestBears(t *testing.T) {
	j := &job{size: 4, endings: map[int]*ending{1: {exited: &exited{Rank: 1, Status: 137}}, 2: {exited: &exited{Rank: 2}}}}
	for _, test := range []struct {
		least, more int
		want        bool
	}{{0, 0, false}, {4, 0, false}, {3, 0, true}, {3, 1, false}, {1, 2, true}} {
		if j.opts.Min = test.least; j.bears(test.more) != test.want {
			t.Errorf("one of 4 has failed, at least %d, %d more: %t", test.least, test.more, !test.want)
		}
	}
}

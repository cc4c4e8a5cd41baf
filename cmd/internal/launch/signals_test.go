//go:build unix

package launch

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// buffer is written by a process's copier and read by its test.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// await waits until text is there n times.
func (b *buffer) await(t *testing.T, n int, text string) {
	t.Helper()
	eventually(t, func() error {
		if got := b.String(); strings.Count(got, text) != n {
			return fmt.Errorf("want %d × %q in %q", n, text, got)
		}
		return nil
	})
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// parentOf returns the nearest ancestor of pid that is an agent.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	for pid > 1 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			t.Fatal(err)
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasSuffix(string(line), "\x00agent\x00") {
			return pid
		}
	}
	t.Fatal("no agent above the rank")
	return 0
}

// Signals go to all ranks. One that ends the job fails it, however well its ranks end.
func TestSignalsAreForwarded(t *testing.T) {
	for end, says := range map[syscall.Signal]string{syscall.SIGINT: "interrupted", syscall.SIGTERM: "ended by signal: terminated", syscall.SIGHUP: "ended by signal: hangup"} {
		cmd, out := startLauncher(t, Options{Hosts: "a,b", Launcher: launcherLocal, Program: rankLine(t, "signals")})
		out.await(t, 2, "listening")
		for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGQUIT, end} {
			cmd.Process.Signal(s)
			out.await(t, 2, "got "+nameOf(s))
		}
		wantStatus(t, cmd, out, statusSignal+int(end))
		out.await(t, 1, says)
	}
}

// A second signal kills ranks that go on after the first one, and so does the end of their grace.
func TestSecondInterruptKills(t *testing.T) {
	t.Parallel()
	const long, goOn = 90 * time.Second, "[tierflow run] 1s after SIGHUP ranks 0-1 of 2 were running, and 1m29s are left; a second signal kills at once"
	for _, test := range []struct {
		program       string // says its name
		grace         time.Duration
		first, second syscall.Signal // 0: none
		between, last string         // what is said between them, and in the end
	}{
		{"deaf", long, syscall.SIGINT, syscall.SIGTERM, "goes on", "killed by a second SIGTERM: ranks 0-1 of 2 were running"},
		{"stubborn", long, syscall.SIGHUP, syscall.SIGINT, goOn, "killed by a second interrupt: ranks 0-1 of 2 were running"},
		{"stubborn", 50 * time.Millisecond, syscall.SIGTERM, 0, "", "killed by the launcher, 50ms after SIGTERM: ranks 0-1 of 2 were running"},
	} {
		mark := marked(t)
		cmd, out := startLauncher(t, Options{Hosts: "a,b", Launcher: launcherLocal, Grace: test.grace, Program: rankLine(t, test.program, mark)})
		out.await(t, 2, test.program)
		cmd.Process.Signal(test.first)
		last := test.first
		if test.second != 0 {
			eventually(t, func() error {
				if !strings.Contains(out.String(), test.between) {
					return fmt.Errorf("no %q in %q", test.between, out)
				}
				return nil
			})
			last = test.second
			cmd.Process.Signal(last)
		}
		wantStatus(t, cmd, out, statusSignal+int(last))
		out.await(t, 1, test.last)
		wantProcesses(t, mark, 0)
	}
}

// Nobody is started in the place of ranks that an interrupt has ended. One that saves its work has time for it. So it is, too,
// where the job could go on without the others. The same signal right behind it changes nothing.
func TestInterruptedJobIsNotRestarted(t *testing.T) {
	t.Parallel()
	for _, opts := range []Options{{MaxRestarts: 50}, {Min: 1}, {}} {
		opts.Hosts, opts.Launcher, opts.Program = "a:2,b:1", launcherLocal, rankLine(t, "saves")
		cmd, out := startLauncher(t, opts)
		out.await(t, 3, "ready")
		cmd.Process.Signal(syscall.SIGINT)
		cmd.Process.Signal(syscall.SIGINT) // as timeout sends it: to the launcher, and to its group
		wantStatus(t, cmd, out, 130)
		for _, text := range []string{"saved", "interrupted"} {
			out.await(t, 1, text)
		}
		out.await(t, 3, "ready")
		out.await(t, 0, "restart")
	}
}

func TestInterruptBeforeStart(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGUSR1} {
		cmd, out := startLauncher(t, Options{Hosts: "a", Launcher: launcherLocal, Agent: []string{"/bin/sh", "-c", "echo up >&2; exec sleep 30"}, Program: []string{"true"}})
		out.await(t, 1, "[a] up")
		cmd.Process.Signal(s)
		wantStatus(t, cmd, out, statusSignal+int(s))
		out.await(t, 1, s.String()+" before the ranks were started")
	}
}

// TestKilledLauncher: kill -9 of the launcher leaves neither ranks nor their children, even if they ignore SIGTERM.
func TestKilledLauncher(t *testing.T) {
	mark := marked(t)
	cmd, out := startLauncher(t, Options{Hosts: "a:2,b:2,c,d", Launcher: launcherLocal, Program: rankLine(t, "parent", mark)})
	out.await(t, 6, "stubborn")
	wantProcesses(t, mark, 12)
	cmd.Process.Kill()
	wantProcesses(t, mark, 0)
	cmd.Wait()
}

// TestKilledLauncherOfChattyRanks: the agents find their stdout broken before or after their stdin ends.
func TestKilledLauncherOfChattyRanks(t *testing.T) {
	mark := marked(t)
	cmd, out := startLauncher(t, Options{Hosts: "a,b", Launcher: launcherLocal, Program: []string{"/bin/sh", "-c", "trap '' TERM; while :; do echo " + mark + "; done & while :; do echo more; done"}})
	eventually(t, func() error {
		if out.String() == "" {
			return fmt.Errorf("no output")
		}
		return nil
	})
	cmd.Process.Kill()
	wantProcesses(t, mark, 0)
	cmd.Wait()
}

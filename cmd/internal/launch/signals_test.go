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

func TestSignalsAreForwarded(t *testing.T) {
	cmd, out := startLauncher(t, Options{Hosts: "a,b", Launcher: launcherLocal, Program: rankLine(t, "signals")})
	out.await(t, 2, "listening")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGQUIT} {
		cmd.Process.Signal(s)
		out.await(t, 2, "got "+nameOf(s))
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("ranks ended well, the launcher with %v\n%s", err, out)
	}
	out.await(t, 2, "got TERM")
}

func TestSecondInterruptKills(t *testing.T) {
	mark := marked(t)
	cmd, out := startLauncher(t, Options{Hosts: "a,b", Launcher: launcherLocal, Program: rankLine(t, "deaf", mark)})
	out.await(t, 2, "deaf")
	cmd.Process.Signal(syscall.SIGINT)
	out.await(t, 2, "goes on")
	if left := processes(mark); len(left) != 2 {
		t.Errorf("processes %v after one interrupt", left)
	}
	cmd.Process.Signal(syscall.SIGINT)
	wantStatus(t, cmd, out, 130)
	out.await(t, 1, "killed by a second interrupt: ranks 0-1 of 2 were running")
	wantProcesses(t, mark, 0)
}

func TestInterruptBeforeStart(t *testing.T) {
	t.Parallel()
	cmd, out := startLauncher(t, Options{Hosts: "a", Launcher: launcherLocal, Agent: []string{"/bin/sh", "-c", "echo up >&2; exec sleep 30"}, Program: []string{"true"}})
	out.await(t, 1, "[a] up")
	cmd.Process.Signal(syscall.SIGINT)
	wantStatus(t, cmd, out, 130)
	out.await(t, 1, "interrupt before the ranks were started")
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

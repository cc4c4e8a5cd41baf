//go:build unix

package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/clock/clocktest"
)

// prefix is this process's own. It ends in a letter and leaves room for a node's number in 15 bytes.
var prefix = fmt.Sprintf("t%xc", os.Getpid())

// command is the script with this process's prefix, not yet started.
func command(t *testing.T, verb string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "./cluster", append([]string{verb}, args...)...)
	cmd.Env = append(os.Environ(), "TIERFLOW_CLUSTER="+prefix)
	return cmd
}

// status runs cmd and returns its exit status with what it printed.
func status(t *testing.T, cmd *exec.Cmd) (int, string) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// want runs a verb of the script and fails the test on another exit status.
func want(t *testing.T, code int, verb string, args ...string) string {
	t.Helper()
	got, out := status(t, command(t, verb, args...))
	if got != code {
		t.Fatalf("cluster %s %q: exit status %d, want %d\n%s", verb, args, got, code, out)
	}
	return out
}

// up makes a cluster that goes down with the test, or skips where this machine cannot have one.
func up(t *testing.T, args ...string) {
	t.Helper()
	skipWithoutTools(t)
	t.Cleanup(func() {
		// The test's context has ended by now.
		cmd := exec.Command("./cluster", "down", "--name", prefix)
		if code, out := status(t, cmd); code != 0 {
			t.Errorf("cluster down: exit status %d\n%s", code, out)
		}
		nothingLeft(t)
	})
	code, out := status(t, command(t, "up", args...))
	if code == 3 {
		t.Skip(strings.TrimSpace(out))
	}
	if code != 0 {
		t.Fatalf("cluster up %q: exit status %d\n%s", args, code, out)
	}
}

func skipWithoutTools(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces are made by root only")
	}
	for _, tool := range []string{"bash", "ip", "tc", "unshare"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
}

// nothingLeft looks for namespaces and host files with this process's prefix.
func nothingLeft(t *testing.T) {
	t.Helper()
	out, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), prefix) {
		t.Errorf("namespaces left behind:\n%s", out)
	}
	if files, _ := filepath.Glob("/etc/netns/" + prefix + "*"); files != nil {
		t.Errorf("left behind: %q", files)
	}
}

func TestCluster(t *testing.T) {
	up(t, "2", "--rate", "1gbit")
	t.Run("up twice", func(t *testing.T) { want(t, 1, "up", "2") })
	t.Run("host name", func(t *testing.T) {
		for _, node := range []string{"0", "node0"} {
			if got := want(t, 0, "exec", node, "cat", "/proc/sys/kernel/hostname"); got != "node0\n" {
				t.Errorf("host name on %s: %q", node, got)
			}
		}
	})
	t.Run("exit status", func(t *testing.T) {
		want(t, 7, "exec", "1", "sh", "-c", "exit 7")
		want(t, 8, "rsh", "1", "exit", "8")
	})
	t.Run("no such node", func(t *testing.T) { want(t, 1, "exec", "2", "true") })
	t.Run("stdin", stdin)
	t.Run("signal", signal)
	t.Run("rsh", rsh)
	t.Run("hosts", hosts)
	t.Run("congestion control", func(t *testing.T) {
		if got := want(t, 0, "exec", "1", "cat", "/proc/sys/net/ipv4/tcp_congestion_control"); got != "reno\n" {
			t.Errorf("congestion control of node1: %q", got)
		}
	})
	t.Run("check", func(t *testing.T) { t.Log(want(t, 0, "check")) })
	t.Run("down ends processes", downEndsProcesses)
	t.Run("down twice", func(t *testing.T) { want(t, 0, "down") })
	t.Run("unknown congestion control", func(t *testing.T) {
		want(t, 3, "up", "2", "--congestion", "nosuch")
		nothingLeft(t)
	})
}

func stdin(t *testing.T) {
	cmd := command(t, "exec", "0", "cat")
	cmd.Stdin = strings.NewReader("through")
	if code, out := status(t, cmd); code != 0 || out != "through" {
		t.Errorf("exit status %d, output %q", code, out)
	}
}

func signal(t *testing.T) {
	cmd := command(t, "exec", "0", "sh", "-c", "echo ready; exec sleep 60")
	ready := start(t, cmd)
	ready()
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGUSR1 {
		t.Errorf("ended by signal %v, want SIGUSR1 (%v)", got, cmd.ProcessState)
	}
}

// start starts cmd and returns a func that waits for its first byte of output.
func start(t *testing.T, cmd *exec.Cmd) func() {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatalf("%v: %v", cmd.Args, err)
		}
	}
}

// rsh is for a shell on the other side, which knows nothing of the caller's environment, directory or quoting.
func rsh(t *testing.T) {
	t.Setenv("SECRET", "of the caller")
	got := want(t, 0, "rsh", "node1", "echo", "$((1+1))  x", "${SECRET-unset};", "cat /proc/sys/kernel/hostname; pwd")
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	if wanted := "2 x unset\nnode1\n" + home + "\n"; got != wanted {
		t.Errorf("got %q, want %q", got, wanted)
	}
	script, err := filepath.Abs("cluster")
	if err != nil {
		t.Fatal(err)
	}
	if got := want(t, 0, "exec", "0", script, "rsh", "node1", "cat", "/proc/sys/kernel/hostname"); got != "node1\n" {
		t.Errorf("from node to node: %q", got)
	}
}

// hosts prints what the nodes themselves read in /etc/hosts.
func hosts(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(want(t, 0, "hosts")), "\n")
	if len(lines) != 2 {
		t.Fatalf("lines of hosts: %q, want 2", lines)
	}
	table := want(t, 0, "exec", "0", "cat", "/etc/hosts")
	for i, line := range lines {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != fmt.Sprintf("node%d", i) {
			t.Fatalf("line %q: want node%d and its addresses", line, i)
		}
		for _, addr := range fields[1:] {
			if !strings.Contains(table, addr+" "+fields[0]+"\n") {
				t.Errorf("no %s for %s in /etc/hosts of node0:\n%s", addr, fields[0], table)
			}
		}
	}
}

func downEndsProcesses(t *testing.T) {
	cmd := command(t, "exec", "1", "sh", "-c", "trap '' TERM; echo ready; sleep 600 & wait; wait")
	ready := start(t, cmd)
	ready()
	begin := time.Now()
	want(t, 0, "down")
	_ = cmd.Wait()
	if took := time.Since(begin); took > 2*time.Minute {
		t.Errorf("down let a process run on for %v", took)
	}
	nothingLeft(t)
}

func TestCheckFailsWithoutRate(t *testing.T) {
	up(t, "2", "--rate", "none")
	if out := want(t, 1, "check"); !strings.Contains(out, "not shaped") {
		t.Errorf("check: %s", out)
	}
}

// A burst of a megabyte lets 256 KiB through at once: what check is for.
func TestCheckFailsOnBurst(t *testing.T) {
	up(t, "2", "--rate", "1gbit")
	for _, link := range [][2]string{{prefix + "0", "eth0"}, {prefix + "1", "eth0"}, {prefix + "br", "port0"}, {prefix + "br", "port1"}} {
		out, err := exec.Command("tc", "-n", link[0], "qdisc", "change", "dev", link[1], "root",
			"handle", "1:", "tbf", "rate", "1gbit", "burst", "1mb", "latency", "50ms").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", link, err, out)
		}
	}
	t.Log(want(t, 1, "check"))
}

func TestDelay(t *testing.T) {
	up(t, "2", "--delay", "5ms") // skips where the kernel has no netem
	for _, node := range []string{"0", "1"} {
		out := want(t, 0, "exec", node, "tc", "qdisc", "show", "dev", "eth0")
		if !strings.Contains(out, "tbf") || !strings.Contains(out, "netem") {
			t.Errorf("queues of node %s:\n%s", node, out)
		}
	}
	want(t, 0, "check")
}

// TestUpIsAllOrNothing lets one tool after another fail in the middle of up.
func TestUpIsAllOrNothing(t *testing.T) {
	skipWithoutTools(t)
	for _, step := range []struct{ tool, pattern string }{
		{"tc", "port1"},
		{"tc", "lo"},
		{"ip", "netns add " + prefix + "1"},
		{"ip", "addr add"},
	} {
		t.Run(step.tool+" "+step.pattern, func(t *testing.T) {
			cmd := command(t, "up", "2")
			cmd.Env = append(cmd.Env, "PATH="+failing(t, step.tool, step.pattern)+":"+os.Getenv("PATH"))
			code, out := status(t, cmd)
			if code == 0 {
				t.Errorf("up succeeded\n%s", out)
			}
			nothingLeft(t)
		})
	}
}

// failing makes a directory with a stand-in for tool that fails when its arguments, or the commands it is to read, have pattern in
// them.
func failing(t *testing.T, tool, pattern string) string {
	t.Helper()
	path, err := exec.LookPath(tool)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
input=
case "$*" in *-batch*) input=$(cat); esac
case "$*$input" in *'%s'*) exit 1; esac
[ -z "$input" ] || exec %[2]s "$@" <<END
$input
END
exec %[2]s "$@"
`, pattern, path)
	if err := os.WriteFile(filepath.Join(dir, tool), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestUpInterrupted ends up with a signal once the first node is there.
func TestUpInterrupted(t *testing.T) {
	skipWithoutTools(t)
	cmd := command(t, "up", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	clocktest.Until(t, "the first node is there", func() bool {
		_, err := os.Stat("/run/netns/" + prefix + "1")
		return err == nil
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit status %d, want 143", code)
	}
	nothingLeft(t)
}

// A namespace of somebody else's is neither used nor removed.
func TestForeignNamespace(t *testing.T) {
	skipWithoutTools(t)
	foreign := prefix + "1"
	if out, err := exec.Command("ip", "netns", "add", foreign).CombinedOutput(); err != nil {
		t.Skipf("cannot make a network namespace: %s", out)
	}
	defer exec.Command("ip", "netns", "del", foreign).Run()
	want(t, 1, "up", "2")
	want(t, 0, "down")
	if _, err := os.Stat("/run/netns/" + foreign); err != nil {
		t.Error(err)
	}
}

func TestWrongArguments(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{
		{"sideways"},
		{"up"},
		{"up", "0"},
		{"up", "255"},
		{"up", "2", "3"},
		{"up", "2", "--rate"},
		{"up", "2", "--rate", "fast"},
		{"up", "2", "--congestion", "No such"},
		{"up", "2", "--delay", "50"},
		{"up", "2", "--name", "ends-in-1"},
		{"up", "2", "--name", "far-too-long-a-name"},
		{"exec", "0"},
		{"exec", "x", "true"},
		{"rsh", "node0"},
		{"hosts", "0"},
		{"check", "--name"},
		{"down", "--name", "a b"},
	} {
		if out := want(t, 2, args[0], args[1:]...); !strings.Contains(out, "usage:") {
			t.Errorf("cluster %q: no usage in\n%s", args, out)
		}
	}
}

func TestMissingTool(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), bash, "./cluster", "up", "2")
	cmd.Env = []string{"PATH=" + t.TempDir()}
	code, out := status(t, cmd)
	named := "needs ip"
	if os.Getuid() != 0 {
		named = "needs root"
	}
	if code != 3 || !strings.Contains(out, named) || strings.Count(out, "\n") != 1 {
		t.Errorf("exit status %d, want 3 and one line with %q:\n%s", code, named, out)
	}
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What needs more than half of the memory that the process may take is refused before it
// begins, by every command that simulates, compiles or draws all ranks.
func TestMemoryRefusals(t *testing.T) {
	for _, line := range []string{
		"simulate alltoall --topo 63x12 --bytes 4MiB",
		"simulate alltoall --topo 63x12 --bytes 4MiB --plan all",
		"simulate alltoall --topo 16x12 --bytes 4MiB --path 3",
		"tune --simulate assumed --topo 63x12 --ops alltoall --bytes 4MiB -o " + os.DevNull,
		"bench coll alltoall --simulate assumed --topo 63x12 --bytes 4MiB",
		"dag alltoall --topo 32x12 --bytes 64KiB --steps --all",
	} {
		t.Run(line, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			const kib = 600_000 // of which no case needs much until it is refused
			c := exec.CommandContext(ctx, "sh", append([]string{"-c", fmt.Sprintf(`ulimit -d %d && exec "$0" "$@"`, kib), os.Args[0]}, strings.Fields(line)...)...)
			c.Env = append(os.Environ(), "TIERFLOW_TEST_COMMAND=1")
			out, _ := c.CombinedOutput()
			if strings.Contains(string(out), "ThreadSanitizer failed to allocate") {
				t.Skip("the race detector needs more memory than there is")
			}
			if status := c.ProcessState.ExitCode(); status != 2 || !strings.Contains(string(out), "of memory, more than half of the 585MiB that are there: ") {
				t.Errorf("status %d: %s", status, out)
			}
		})
	}
}

// What takes long says on a terminal what it needs, and how far it is.
func TestProgressOnTerminal(t *testing.T) {
	for _, test := range []struct{ line, need, bar string }{
		{"simulate alltoall --topo 62x2 --bytes 16MiB", "steps on 124 ranks: some", "simulating"},
		{"verify all --topo 8x4", "cases of up to", "checking"},
		{"tune --simulate assumed --topo 16x4 --ops bcast --method exhaustive -o " + os.DevNull, "measurements beside each other", "exhaustive"},
	} {
		t.Run(test.line, func(t *testing.T) {
			t.Parallel() // it mostly waits for the bar
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			master, terminal := openTerminal(t)
			c := exec.CommandContext(ctx, os.Args[0], strings.Fields(test.line)...)
			c.Env = append(os.Environ(), "TIERFLOW_TEST_COMMAND=1")
			c.Stderr = terminal
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			terminal.Close()
			stop := context.AfterFunc(ctx, func() { master.Close() })
			defer stop()
			var said strings.Builder
			piece := make([]byte, 4096)
			for isSent := false; ; {
				n, err := master.Read(piece)
				said.Write(piece[:n])
				if text := said.String(); !isSent && strings.Contains(text, test.need) && strings.Contains(text, test.bar) && strings.Contains(text, "%") {
					isSent = true
					if err := c.Process.Signal(syscall.SIGINT); err != nil {
						t.Fatal(err)
					}
				}
				if err != nil {
					break // the command has ended
				}
			}
			_ = c.Wait()
			if status := c.ProcessState.ExitCode(); status != 130 {
				t.Errorf("status %d: %q", status, said.String())
			}
		})
	}
}

// openTerminal returns both ends of a new terminal.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return master, terminal
}

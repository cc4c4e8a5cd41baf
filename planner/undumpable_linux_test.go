package planner_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
	"github.com/tierflow/tierflow/tasks"
)

// undumpableVariable tells a rank of TestKernelForbidsReads what it is; "1" is
// one that forbids others to read it.
const undumpableVariable = "TIERFLOW_TEST_UNDUMPABLE"

// TestKernelForbidsReads runs solo on processes of a user without privileges that
// the kernel keeps from reading each other: copies in shared memory take over.
// Processes of the same user that may read each other need none.
func TestKernelForbidsReads(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to start ranks as another user: root reads what it likes")
	}
	scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	restricted := err == nil && strings.TrimSpace(string(scope)) != "0"
	for _, undumpable := range []bool{true, false} {
		t.Run(strconv.FormatBool(undumpable), func(t *testing.T) {
			if !undumpable && restricted {
				t.Skipf("kernel.yama.ptrace_scope is %s: no process reads its sibling here", scope)
			}
			const n = 3
			address, listener := rendezvous(t)
			defer listener.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var ranks errgroup.Group
			for r := range n {
				ranks.Go(func() error { return unprivileged(ctx, r, n, address, listener, undumpable) })
			}
			if err := ranks.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// unprivileged runs one rank as the user nobody.
func unprivileged(ctx context.Context, rank, size int, address string, listener *os.File, undumpable bool) error {
	const nobody = 65534
	// The folders that this test's binary is in may be closed to that user; the
	// kernel's own link to it is not.
	c := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^TestUnprivilegedRank$", "-test.v")
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	c.Env = []string{
		undumpableVariable + "=" + strconv.Itoa(map[bool]int{true: 1}[undumpable]),
		"TIERFLOW_RANK=" + strconv.Itoa(rank), "TIERFLOW_SIZE=" + strconv.Itoa(size),
		"TIERFLOW_RENDEZVOUS=" + address, "TIERFLOW_SECRET=a test", "TIERFLOW_PLAN=s=solo,fs=64KiB",
	}
	if rank == 0 {
		giveListener(c, listener)
	}
	out, err := c.CombinedOutput()
	if err == nil && !bytes.Contains(out, []byte("--- PASS: TestUnprivilegedRank")) {
		err = fmt.Errorf("it ran no test")
	}
	if err != nil {
		return fmt.Errorf("rank %d: %w\n%s", rank, err, out)
	}
	return nil
}

// TestUnprivilegedRank is a rank of TestKernelForbidsReads.
func TestUnprivilegedRank(t *testing.T) {
	kind := os.Getenv(undumpableVariable)
	if kind == "" {
		t.Skip("runs only as a process that TestKernelForbidsReads starts")
	}
	if kind == "1" {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	comm, err := planner.Join(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := shared(t.Context(), comm, kind == "1"); err != nil {
		t.Error(err)
	}
	if err := comm.Close(); err != nil {
		t.Error(err)
	}
}

// shared checks results, and what the root of a bcast copied: nothing if the
// others read it, else all, to where they can.
func shared(ctx context.Context, c *planner.Comm, forbidden bool) error {
	if err := singleCopies(ctx, c, false, false); err != nil {
		return err
	}
	const n = 100_000
	buf := make([]int32, n)
	for i := range buf {
		if c.Rank() == 0 {
			buf[i] = int32(i)
		}
	}
	before := raw.Counters(c).Copied
	if err := planner.Bcast(ctx, c, buf, 0); err != nil {
		return err
	}
	copied, want := raw.Counters(c).Copied-before, int64(0)
	if forbidden || c.Rank() != 0 {
		want = 4 * n
	}
	if copied != want {
		return fmt.Errorf("rank %d copied %d bytes, want %d", c.Rank(), copied, want)
	}
	for i, got := range buf {
		if got != int32(i) {
			return fmt.Errorf("element %d: %d", i, got)
		}
	}
	return planner.Allreduce(ctx, c, []int64{1}, []int64{0}, tasks.Sum)
}

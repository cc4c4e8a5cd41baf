package planner_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/levels/join"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/raw"
)

// heirVariable is the number of ranks, for the rank of TestHeirsHideNoDeath with a process of its own.
const heirVariable = "TIERFLOW_TEST_HEIR"

// A rank dies, and a child of its process has all its sockets, as one made by fork without exec: they stay open.
// The others' call ends all the same, with the dead rank's name, and they can go on without it.
func TestHeirsHideNoDeath(t *testing.T) {
	if _, err := exec.LookPath("cat"); err != nil {
		t.Skip("no process to inherit: ", err)
	}
	for _, test := range []struct {
		what   string
		nodes  []string
		victim int
	}{
		{"on a node of all", []string{"a", "a", "a"}, 2},
		{"the one that leads its node", []string{"a", "a", "b", "b"}, 2},
		{"rank 0", []string{"a", "a", "b"}, 0},
		{"with a node of its own", []string{"a", "b"}, 1},
	} {
		t.Run(test.what, func(t *testing.T) { testHeir(t, test.nodes, test.victim) })
	}
}

func testHeir(t *testing.T, nodes []string, victim int) {
	address, listener := rendezvous(t)
	defer listener.Close()
	rank, said := startHeir(t, address, listener, nodes, victim)
	limited, end := context.WithTimeoutCause(t.Context(), patience, errHangs)
	defer end()
	ctx, cancel := context.WithCancel(limited)
	defer cancel()
	var summed, failed, all sync.WaitGroup
	for r, node := range nodes {
		if r == victim {
			continue
		}
		cfg := join.Config{Rank: levels.Rank(r), Size: len(nodes), Node: node, Rendezvous: []string{address}, Secret: heirSecret}
		if r == 0 {
			l, err := net.FileListener(listener)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Listener = l
		}
		summed.Add(1)
		failed.Add(1)
		all.Go(func() {
			if err := surviveHeir(ctx, cfg, victim, &summed, &failed); err != nil {
				t.Errorf("rank %d: %v", r, err)
				cancel()
			}
		})
	}
	if line, err := said.ReadString('\n'); err != nil || line != "inherited\n" {
		t.Errorf("the victim says %q, %v", line, err)
	}
	summed.Wait()
	if err := rank.Process.Kill(); err != nil {
		t.Error(err)
	}
	all.Wait()
}

const heirSecret = "the secret of a test, which is long enough"

// surviveHeir is a rank that lives on. It has summed up before the death, and failed before those who live go on.
func surviveHeir(ctx context.Context, cfg join.Config, victim int, summed, failed *sync.WaitGroup) error {
	hasSummed, hasFailed := sync.OnceFunc(summed.Done), sync.OnceFunc(failed.Done)
	defer hasSummed()
	defer hasFailed()
	c, err := raw.JoinAs(ctx, cfg, nil)
	if err != nil {
		return err
	}
	if err := sum(ctx, c); err != nil {
		return err
	}
	hasSummed()
	if err := blames(sum(ctx, c), victim); err != nil {
		return err
	}
	hasFailed()
	failed.Wait()
	change, err := c.Shrink(ctx)
	if err != nil {
		return err
	}
	if len(change.Lost) != 1 || change.Lost[0].Rank != victim {
		return fmt.Errorf("lost are %+v, want rank %d", change.Lost, victim)
	}
	return errors.Join(sum(ctx, change.Comm), change.Comm.Close(), c.Close())
}

// startHeir starts the victim. It is killed, and its child ended, with the test.
func startHeir(t *testing.T, address string, listener *os.File, nodes []string, victim int) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestRankWithHeir$")
	c.Env = append(os.Environ(), heirVariable+"="+strconv.Itoa(len(nodes)), "TIERFLOW_RANK="+strconv.Itoa(victim),
		"TIERFLOW_SIZE="+strconv.Itoa(len(nodes)), "TIERFLOW_NODE="+nodes[victim], "TIERFLOW_RENDEZVOUS="+address, "TIERFLOW_SECRET="+heirSecret)
	if victim == 0 {
		giveListener(c, listener)
	}
	c.Stderr = t.Output()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c, bufio.NewReader(out)
}

// TestRankWithHeir is the victim of TestHeirsHideNoDeath.
func TestRankWithHeir(t *testing.T) {
	if os.Getenv(heirVariable) == "" {
		t.Skip("runs only as a process that TestHeirsHideNoDeath starts")
	}
	c, err := planner.Join(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sum(t.Context(), c); err != nil { // some connections are made by then
		t.Fatal(err)
	}
	if err := bequeath(); err != nil {
		t.Fatal(err)
	}
	fmt.Println("inherited")
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// bequeath starts a process with all of this one's sockets. It lives as long as this one's input.
func bequeath() error {
	heir := exec.Command("cat")
	heir.Stdin = os.Stdin
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, file := range files {
		if name, err := os.Readlink(file); err != nil || !strings.HasPrefix(name, "socket:") {
			continue
		}
		fd, err := strconv.Atoi(filepath.Base(file))
		if err != nil {
			return err
		}
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		heir.ExtraFiles = append(heir.ExtraFiles, os.NewFile(uintptr(copied), file))
	}
	return heir.Start()
}

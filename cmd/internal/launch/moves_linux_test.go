package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner"
	"github.com/tierflow/tierflow/planner/elastic"
	"github.com/tierflow/tierflow/tasks"
)

func init() { rankPrograms["nomad"] = nomad }

// nomad sums with all there are, says where it is and with how many, and ends when one of them sees a file.
func nomad(args []string) {
	check(elastic.Run(context.Background(), nil, func(ctx context.Context, c *planner.Comm, _ *planner.Change) error {
		fmt.Printf("process %d of slot %s on %s: one of %d\n", os.Getpid(), os.Getenv(env.Rank), os.Getenv(env.Node), c.Size())
		for {
			if err := c.Turn(ctx); err != nil {
				return err
			}
			ends := []int64{0}
			if _, missing := os.Stat(args[0]); missing == nil {
				ends[0] = 1
			}
			err := planner.Allreduce(ctx, c, ends, ends, tasks.Max)
			if all, failed := c.Agree(ctx, err == nil); !all {
				return firstOf(err, failed, planner.ErrRevoked)
			}
			if ends[0] > 0 {
				return nil
			}
			pause(time.Millisecond)
		}
	}))
}

func firstOf(errs ...error) error {
	return errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
}

// When a host is lost its ranks move: first there is no room, then the first host that is offered can't start an agent, then one
// can. The list is a file, or what a command prints.
func TestMoves(t *testing.T) {
	t.Parallel()
	for _, command := range []bool{false, true} {
		dir := t.TempDir()
		file, end := filepath.Join(dir, "hosts"), filepath.Join(dir, "end")
		write := func(name, text string) {
			t.Helper()
			err := os.WriteFile(name+".new", []byte(text), 0o644)
			if err == nil {
				err = os.Rename(name+".new", name)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		write(file, "a:2\nb:2\n")
		// The launcher's shell: no host is called broken.
		shell := filepath.Join(dir, "rsh")
		if err := os.WriteFile(shell, []byte("#!/bin/sh\nhost=$1; shift\n[ $host != broken ] || { echo no such host >&2; exit 255; }\nTIERFLOW_NODE=$host exec \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		o := Options{Hostfile: file, Launcher: shell, MaxRestarts: 2, NodeNames: true, Bind: bindNone, Timeout: forever, Program: rankLine(t, "nomad", end)}
		if command {
			o.Hostfile, o.HostsCommand = "", "cat "+file
		}
		cmd, out := startLauncher(t, o)
		eventually(t, func() error {
			if n := count(out.String(), `on [ab]: one of 4`); n != 4 {
				return fmt.Errorf("%d of 4 ranks have begun:\n%s", n, out.String())
			}
			return nil
		})
		write(file, "a:2\n")
		kill(t, parentOf(t, processOn(t, out.String(), "b")))
		for _, says := range []string{
			"host b is lost: ranks 2-3 move to another one\n",
			"no host has a free slot for ranks 2-3",
			"host broken can't take ranks 2: ",
			"rank 3 goes on, on host c; restart 1 of 2\n",
			"rank 2 goes on, on host c; restart 2 of 2\n",
		} {
			eventually(t, func() error {
				if !strings.Contains(out.String(), says) {
					return fmt.Errorf("%q was not said:\n%s", says, out.String())
				}
				return nil
			})
			if strings.HasPrefix(says, "no host") {
				write(file, "a:2\nbroken:1\nc:2\n")
			}
			if t.Failed() {
				return
			}
		}
		eventually(t, func() error {
			if n := count(out.String(), `on [ac]: one of 4`); n < 6 { // those on a say it again
				return fmt.Errorf("%d times a rank was one of 4 on a and c:\n%s", n, out.String())
			}
			return nil
		})
		write(end, "")
		if err := cmd.Wait(); err != nil {
			t.Errorf("command %v: %v\n%s", command, err, out.String())
		}
	}
}

// Slots are free that no rank has; hosts that were lost come last.
func TestRoom(t *testing.T) {
	j := &job{conns: []*conn{{host: "a", ranks: []int{0, 1}}, {host: "b", ranks: []int{2}}, {host: "a", ranks: []int{3}}}}
	j.moves.markLost("c")
	got := j.room([]node{{"a", 3}, {"c", 2}, {"b", 4}, {"d", 1}})
	if want := "[{b 3} {d 1} {c 2}]"; fmt.Sprint(got) != want {
		t.Errorf("free are %v, want %s", got, want)
	}
}

// An agent that doesn't answer in time is ended, and its ranks look further, later and later.
func TestSilentAgentIsMissed(t *testing.T) {
	j := newJob(Options{AgentTimeout: time.Minute}, strings.NewReader(""), io.Discard, io.Discard)
	o := &move{ranks: []int{1}}
	j.moves.all = []*move{o}
	for _, pause := range []time.Duration{time.Second, 2 * time.Second} {
		c := &conn{host: "x", ranks: o.ranks, queue: make(chan frame, queuedFrames), cmd: exec.Command("sleep", "600")}
		c.cmd.SysProcAttr = groupAttr()
		if err := c.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		j.conns, o.conn, o.due = []*conn{c}, c, time.Now()
		j.moveOn()
		if err := c.cmd.Wait(); err == nil || !c.missed || len(j.conns) > 0 || o.conn != nil || o.pause != pause || !j.moves.lost["x"] || j.moves.wake == nil {
			t.Errorf("%v, missed %v, %d agents, pause %v", err, c.missed, len(j.conns), o.pause)
		}
	}
}

// processOn returns the process of a rank on a node.
func processOn(t *testing.T, out, node string) (pid int) {
	t.Helper()
	for line := range strings.Lines(out) {
		var rank, slot int
		var at string
		if n, _ := fmt.Sscanf(line, "[%d] process %d of slot %d on %s", &rank, &pid, &slot, &at); n == 4 && at == node+":" {
			return pid
		}
	}
	t.Fatalf("no rank on %s:\n%s", node, out)
	return 0
}

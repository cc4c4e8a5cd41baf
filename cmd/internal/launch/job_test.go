//go:build unix

package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/levels/join/launcher"
)

// guest is a rank that speaks with the launcher by itself. Rank 1 dies. When its successor waits, rank 0 lets it in, or ends with
// status args[0].
func guest(args []string) {
	l := launcher.OpenLobby(launcher.NewVars(os.Getenv))
	if l == nil {
		check(errors.New("no lobby"))
	}
	if l.Enter() {
		p, err := l.Await(context.Background())
		fmt.Printf("restart %s: rank %d of %d by %q, %v\n", os.Getenv(env.Restarts), p.Rank, p.Size, p.Text, err)
		if err != nil {
			os.Exit(7)
		}
		return
	}
	l.Entered()
	waitFor := func(true func() bool) {
		if !poll(context.Background(), true) {
			check(errors.New("nothing happened"))
		}
	}
	waitFor(func() bool { return l.Waiting() != nil }) // the launcher has heard that somebody is in
	if rank() == 1 {
		os.Exit(3)
	}
	waitFor(func() bool { return len(l.Waiting()) == 1 })
	switch args[0] {
	case "invite":
		all, _ := l.Follow(context.Background(), []int{1})
		check(l.Invite([]launcher.Place{{Slot: 1, Rank: 5, Size: 6, Text: "text"}}))
		<-all.Done()
	case "4":
		os.Exit(4)
	}
}

func TestRestarts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program  []string
		restarts int
		status   int
		want     []string // in the output
	}{
		{rankLine(t, "guest", "invite"), 1, 0, []string{"restart 1 of 1", `[1] restart 1: rank 5 of 6 by "text", <nil>`}},
		{rankLine(t, "guest", "0"), 9, 0, []string{"restart 1 of 9", "[1] restart 1: rank 0 of 0 by \"\", the job ends without"}},
		{rankLine(t, "guest", "4"), 9, 4, []string{"restart 1 of 9"}}, // nobody is left that could let the other one in
		{[]string{"sh", "-c", `test "$TIERFLOW_RANK" = 0 && sleep 3; exit 3`}, 1, 3, []string{"restart 1 of 1"}},
	} {
		r := run(t, Options{Hosts: "a:1,b:1", Launcher: launcherLocal, MaxRestarts: test.restarts, Program: test.program})
		r.want(t, test.status)
		for _, want := range test.want {
			if all := r.stdout.String() + r.stderr.String(); !strings.Contains(all, want) {
				t.Errorf("%v: no %q in\n%s", test.program, want, all)
			}
		}
	}
	if _, err := (Options{MaxRestarts: -1, Program: []string{"x"}}).withDefaults(); err == nil || !strings.Contains(err.Error(), "-1 restarts") {
		t.Errorf("-1 restarts: %v", err)
	}
}

// A process that ends before it was let in is started again after longer and longer pauses.
func TestPauses(t *testing.T) {
	j := newJob(Options{MaxRestarts: 100}, strings.NewReader(""), io.Discard, io.Discard)
	c := &conn{host: "a", ranks: []int{0, 1}, queue: make(chan frame, queuedFrames), cmd: exec.Command("agent")}
	j.conns = []*conn{c}
	j.openLobby()
	j.lobby.runs = true
	var pauses []time.Duration
	for range 7 {
		j.replace(c, &exited{Rank: 1, Status: 1})
		pauses = append(pauses, j.lobby.delays[1])
		j.lobby.due = nil // it was started
	}
	if got, want := fmt.Sprint(pauses), "[0s 1s 2s 4s 8s 16s 30s]"; got != want {
		t.Errorf("pauses %v; want %v", got, want)
	}
	j.lobby.waiting = []int{1}
	j.hearNote(c, &note{Rank: 0, Line: []byte(`{"invite":[{"slot":1}]}`)})
	if j.lobby.delays[1] != 0 || !j.lobby.members[1] {
		t.Error("who was let in is not a member like any other")
	}
	j.lobby.runs = false
	for range 2 { // the first one that joins is news to all
		j.hearNote(c, &note{Rank: 0, Line: []byte(`{"in":true}`)})
	}
	told := 0
	for len(c.queue) > 0 {
		if f := <-c.queue; f.Tell != nil && strings.Contains(string(f.Tell.Line), `"runs":true`) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times that the job runs; want once", told)
	}
	j.hearNote(c, &note{Rank: 0, Line: []byte(`nonsense`)})
	if j.failure == nil {
		t.Error("nonsense was understood")
	}
}

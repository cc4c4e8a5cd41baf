package launch

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tierflow/tierflow/levels/join/launcher"
)

// What ranks say of a failure, and how they end, in any order: the launcher names where it began, and nobody else.
func TestWhoIsBlamed(t *testing.T) {
	exits := func(rank, status int) *exited { return &exited{Rank: rank, Status: status} }
	killed := func(rank int, sig syscall.Signal) *exited {
		return &exited{Rank: rank, Status: statusSignal + int(sig), Signal: int(sig), Text: sig.String()}
	}
	blames := func(e *exited, b launcher.Blame) *exited {
		e.Blame = &b
		return e
	}
	const disagree = "ranks disagree on the collective: as call 0 rank 1 runs x, rank 0 runs y"
	for name, c := range map[string]struct {
		min     int
		signal  syscall.Signal // forwarded before the ranks of end
		before  []*exited
		end     []*exited
		rank    int // -1: no one
		text    string
		nowhere string // in the text
	}{
		"by itself":               {end: []*exited{exits(2, 3)}, rank: 2, text: "exit status 3"},
		"because of another":      {end: []*exited{blames(exits(2, 1), launcher.Blame{Rank: 1, Why: "was lost"}), exits(1, 3)}, rank: 1, text: "exit status 3", nowhere: "rank 2"},
		"the odd one":             {end: []*exited{blames(exits(2, 1), launcher.Blame{Rank: 1, Why: disagree}), blames(exits(1, 1), launcher.Blame{Rank: 1, Why: disagree})}, rank: 1, text: disagree, nowhere: "rank 2"},
		"nobody more than others": {end: []*exited{blames(exits(2, 1), launcher.Blame{Rank: -1, Why: disagree}), blames(exits(1, 1), launcher.Blame{Rank: -1, Why: disagree})}, rank: 2, text: disagree, nowhere: "rank 2"},
		"one too many": {
			min: 2, before: []*exited{killed(1, syscall.SIGKILL), killed(2, syscall.SIGKILL)},
			end: []*exited{blames(killed(3, syscall.SIGKILL), launcher.Blame{Rank: 1, Why: "was lost"})}, rank: 3, text: "ended by signal: killed", nowhere: "rank 1",
		},
		"one too many, by itself": {
			min: 2, before: []*exited{killed(1, syscall.SIGKILL), killed(2, syscall.SIGKILL)},
			end: []*exited{blames(exits(3, 1), launcher.Blame{Rank: 1, Why: "was lost"})}, rank: 3, text: "exit status 1", nowhere: "rank 1",
		},
		"interrupted":               {signal: syscall.SIGINT, end: []*exited{killed(2, syscall.SIGINT), killed(1, syscall.SIGINT)}, rank: -1, text: "interrupted"},
		"interrupted, and says so":  {signal: syscall.SIGINT, end: []*exited{blames(exits(2, 1), launcher.Blame{Rank: 2, Why: "context canceled"})}, rank: -1, text: "interrupted"},
		"interrupted, and lost":     {signal: syscall.SIGINT, end: []*exited{blames(exits(2, 1), launcher.Blame{Rank: 1, Why: "was lost"}), killed(1, syscall.SIGINT)}, rank: -1, text: "interrupted"},
		"terminated":                {signal: syscall.SIGTERM, end: []*exited{killed(0, syscall.SIGTERM)}, rank: -1, text: "ended by signal: terminated"},
		"interrupted, and crashed":  {signal: syscall.SIGINT, end: []*exited{killed(2, syscall.SIGSEGV)}, rank: 2, text: "segmentation fault"},
		"interrupted, and panicked": {signal: syscall.SIGINT, end: []*exited{exits(2, 2)}, rank: 2, text: "exit status 2"},
		"failed before":             {before: []*exited{exits(2, 3)}, signal: syscall.SIGINT, end: []*exited{killed(1, syscall.SIGINT)}, rank: 2, text: "exit status 3"},
	} {
		j := newJob(Options{Min: c.min}, strings.NewReader(""), nil, nil)
		j.size, j.released = 4, true
		for _, e := range c.before {
			j.noteEnding(nil, e)
		}
		if c.signal != 0 {
			j.forward(c.signal)
		}
		for _, e := range c.end {
			j.noteEnding(nil, e)
		}
		_, err := j.result()
		failed, is := errors.AsType[*RankError](err)
		if is != (c.rank >= 0) || is && failed.Rank != c.rank || !strings.Contains(err.Error(), c.text) || c.nowhere != "" && strings.Contains(err.Error(), c.nowhere) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// When a job fails because of a rank whose process was replaced, its end and last lines are reported, and not those of
// the process in its place, unless that one was let in.
func TestReplacedIsBlamed(t *testing.T) {
	for _, letIn := range []bool{false, true} {
		j := newJob(Options{MaxRestarts: 2}, strings.NewReader(""), io.Discard, io.Discard)
		c := &conn{host: "a", ranks: []int{0, 1, 2}, queue: make(chan frame, queuedFrames), cmd: exec.Command("agent"), starts: map[int]int{}, sources: map[int]*source{}}
		j.conns, j.size, j.released = []*conn{c}, 3, true
		j.openLobby()
		j.lobby.runs = true
		start := func(rank int, says string) {
			s := c.sources[rank]
			if s == nil {
				s = &source{}
				c.sources[rank] = s
			}
			s.begin()
			c.starts[rank]++
			s.remember([]byte(says))
		}
		for rank := range 3 {
			start(rank, "begins")
		}
		c.sources[2].remember([]byte("its last word"))
		j.replace(c, &exited{Rank: 2, Status: statusSignal + int(syscall.SIGKILL), Signal: int(syscall.SIGKILL), Text: "killed"})
		start(2, "wants in")
		want := "rank 2 on a: ended by signal: killed (status 137); its last lines:\n  begins\n  its last word"
		if letIn {
			j.hearNote(c, &note{Rank: 2, Line: []byte(`{"wait":true}`)})
			j.hearNote(c, &note{Rank: 0, Line: []byte(`{"invite":[{"slot":2}]}`)})
			want = "rank 2 on a: exit status 4: was lost; its last lines:\n  wants in"
		}
		j.lobby.restarts = j.opts.MaxRestarts
		for _, rank := range []int{0, 1} {
			j.replace(c, &exited{Rank: rank, Status: 1, Blame: &launcher.Blame{Rank: 2, Why: "was lost"}})
		}
		j.replace(c, &exited{Rank: 2, Status: 4, Blame: &launcher.Blame{Rank: 2, Why: "was lost"}})
		if _, err := j.result(); err == nil || err.Error() != want {
			t.Errorf("let in %v: %v; want %s", letIn, err, want)
		}
	}
}

// A rank that dies is named where the job goes on without it.
func TestDeathIsSaidIfTheJobGoesOn(t *testing.T) {
	var said strings.Builder
	j := newJob(Options{Min: 3}, strings.NewReader(""), nil, &said)
	j.size, j.released = 4, true
	c := &conn{host: "a", starts: map[int]int{}}
	for _, e := range []*exited{{Rank: 0}, {Rank: 2, Status: 3}, {Rank: 1, Status: 137, Signal: 9}} {
		j.noteEnding(c, e)
	}
	if got, want := said.String(), "[tierflow run] rank 2 on a: exit status 3; 3 of 4 ranks are left, --min 3\n"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

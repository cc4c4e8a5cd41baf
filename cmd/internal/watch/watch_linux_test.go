package watch

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/executor"
	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/planner/raw"
)

var tierflow kittest.Runner = func() *cobra.Command {
	return kit.NewRoot("tierflow", "test", PsCommand(), DiagnoseCommand(), TopCommand(), MetricsCommand())
}

// play opens the doors of a job of four ranks, the last on another machine: rank 0 asks it.
func play(t *testing.T, name string, states []flight.State) {
	t.Helper()
	root := os.Getenv(env.Door)
	for rank := range 3 {
		d, err := door.Open(root, door.Info{Job: name, Rank: rank, Ranks: 4, Nodes: []string{"a", "a", "a", "b"}}, func(q door.Question) door.Answer {
			if len(q.Ranks) > 0 {
				return door.Answer{States: states[3:]}
			}
			return door.Answer{States: states[rank : rank+1]}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
	}
}

// doors lets commands and ranks meet in a folder of the test's.
func doors(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "watch") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv(env.Door, filepath.Join(dir, "doors"))
}

// stuck is a job whose rank 3 is late; of a healthy one it has only just been left.
func stuck(long time.Duration) (all []flight.State) {
	for rank := range 3 {
		all = append(all, flight.State{
			Rank: rank, Doing: flight.Inside, PID: os.Getpid(), At: "main.main main.go:30", Called: []flight.Called{{Calls: 8}},
			Open: []flight.Open{{Seq: 7, What: "barrier", Waits: "ib#0 recv", Peers: []int{3}, For: long, Awaited: true}},
		})
	}
	return append(all, flight.State{Rank: 3, Doing: flight.Outside, PID: 77, At: "main.load load.go:88", Last: "barrier #6", Since: long, Called: []flight.Called{{Calls: 7}}})
}

func TestPs(t *testing.T) {
	doors(t)
	if out := tierflow.Succeeds(t, "ps"); !strings.HasPrefix(out, "no job") || !strings.Contains(out, env.Managed) {
		t.Errorf("%q", out)
	}
	tierflow.Refuses(t, "tierflow diagnose: no job of this user runs here", "diagnose")
	play(t, "4f2c91aa", stuck(12*time.Second))
	play(t, "00c0ffee", stuck(0))
	tierflow.Refuses(t, "2 jobs run, name one: jobs of this user here are 4f2c91aa (watch.test, 4 ranks), 00c0ffee (watch.test, 4 ranks)", "diagnose")
	out := tierflow.Succeeds(t, "ps", "4f")
	for _, want := range []string{
		"job 4f2c91aa: watch.test, 4 ranks, for ", "rank  node  process  in ",
		"barrier #7 3 12.0 s  main.main main.go:30",
		"3 b 77 in no call after barrier #6 - 12.0 s main.load load.go:88",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	fresh := stuck(0)
	fresh[1] = flight.State{Rank: 1, Doing: flight.Outside, PID: os.Getpid(), At: "main.main main.go:9"}
	play(t, "5f2c91aa", fresh)
	if out, want := tierflow.Succeeds(t, "ps", "5f"), regexp.MustCompile(`\n1 +a +\d+ +in no call +- +\d+\.\d s +main\.main`); !want.MatchString(out) {
		t.Errorf("a rank without a call has no time in\n%s", out)
	}
	views := decode[[]*view](t, tierflow.Succeeds(t, "ps", "--json"))
	if len(views) != 3 || len(views[0].States) != 4 {
		t.Errorf("%+v", views)
	}
	tierflow.Refuses(t, "00c0ffee", "ps", "77")
	t.Setenv(env.Door, "off")
	if s := tierflow.Run(t, "ps"); s.Status != 2 {
		t.Errorf("%+v", s)
	}
}

// decode reads JSON whose fields have names like for_ns, and words in place of numbers.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	for _, name := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(text, -1) {
		if strings.ToLower(name[1]) != name[1] {
			t.Errorf("the field %s of JSON is no name_like_this", name[1])
		}
	}
	if regexp.MustCompile(`"(doing|class)": *\d`).MatchString(text) {
		t.Errorf("a number in place of a word in\n%s", text)
	}
	return kittest.Decode[T](t, text)
}

func TestDiagnose(t *testing.T) {
	doors(t)
	tierflow.Refuses(t, "no job", "diagnose")
	play(t, "4f2c91aa", stuck(12*time.Second))
	const late = "late: rank 3 has not come to barrier #7 for 12 s; it is in main.load load.go:88\n"
	for _, args := range [][]string{{"diagnose"}, {"diagnose", "4f"}, {"diagnose", "--pid", strconv.Itoa(os.Getpid())}} {
		if s := tierflow.Run(t, args...); s.Status != 1 || s.Out != late {
			t.Errorf("%q: %+v, want status 1 and %s", args, s, late)
		}
	}
	if s := tierflow.Run(t, "diagnose", "--least", "20s"); s.Status != 0 || !strings.Contains(s.Out, "nothing is wrong") {
		t.Errorf("%+v", s)
	}
	play(t, "00c0ffee", stuck(0))
	s := tierflow.Run(t, "diagnose", "00", "--json")
	if r := decode[result](t, s.Out); s.Status != 0 || !r.Healthy || len(r.States) != 4 {
		t.Errorf("%+v", s)
	}
	for _, args := range [][]string{{"diagnose"}, {"diagnose", "x"}, {"diagnose", "--pid", "1"}, {"diagnose", "4f", "--pid", "1"}, {"diagnose", "--least", "0s"}} {
		if s := tierflow.Run(t, args...); s.Status != 2 {
			t.Errorf("%q: %+v, want status 2", args, s)
		}
	}
}

func TestDiagnoseFolder(t *testing.T) {
	dir := t.TempDir()
	if s := tierflow.Run(t, "diagnose", dir); s.Status != statusUnreadable {
		t.Errorf("%+v, want status 3", s)
	}
	whole := door.Snapshot{States: stuck(12 * time.Second), Found: &verdict.Finding{Class: verdict.Late, Ranks: []int{3}, Text: "rank 3 has not come"}, Taken: time.Now()}
	if err := whole.Keep(dir, 0); err != nil {
		t.Fatal(err)
	}
	if s := tierflow.Run(t, "diagnose", dir); s.Status != 1 || s.Out != "late: rank 3 has not come\n" {
		t.Errorf("%+v, want what the job knew, once", s)
	}
	whole.States, whole.Found = nil, &verdict.Finding{Class: verdict.Late, Ranks: []int{1}, Text: "rank 1 has not come to Close"}
	closing := t.TempDir()
	if err := whole.Keep(closing, 0); err != nil {
		t.Fatal(err)
	}
	if s := tierflow.Run(t, "diagnose", closing); s.Status != 1 || s.Out != "late: rank 1 has not come to Close\n" {
		t.Errorf("%+v, want what only the job knew", s)
	}
	if err := os.Remove(filepath.Join(dir, "r0.snap")); err != nil {
		t.Fatal(err)
	}
	failed := flight.State{Rank: 1, Doing: flight.Outside, Failed: &flight.Failed{Rank: 3, Text: "rank 3 failed: was lost", Kind: "died"}}
	if err := (&door.Snapshot{States: []flight.State{failed}}).Keep(dir, 1); err != nil {
		t.Fatal(err)
	}
	if s := tierflow.Run(t, "diagnose", dir); s.Status != 1 || !strings.HasPrefix(s.Out, "died: rank 3 failed: was lost\n") {
		t.Errorf("%+v", s)
	}
}

// Rates are of two looks at what ranks have done, and who waits least is named.
func TestTop(t *testing.T) {
	doors(t)
	var mu sync.Mutex
	begin := time.Now()
	for rank := range 3 {
		d, err := door.Open(os.Getenv(env.Door), door.Info{Job: "4f2c91aa", Rank: rank, Ranks: 3, Nodes: []string{"a", "a", "b"}}, func(q door.Question) door.Answer {
			mu.Lock()
			defer mu.Unlock()
			u := raw.Usage{Rank: rank, Levels: []string{"node", "network"}}
			past := time.Since(begin)
			u.Calls = []executor.Calls{{Collective: "bcast", Plan: "x", Count: int64(past.Seconds() * 1000)}}
			u.Sent, u.Read = []int64{int64(past.Seconds() * 2e6), 0}, []int64{0, 0}
			if rank != 1 {
				u.Waited = past * 9 / 10
			}
			text, err := json.Marshal(u)
			if err != nil || !q.Usage {
				t.Errorf("%v, %+v", err, q)
			}
			return door.Answer{Usage: text}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
	}
	out := tierflow.Succeeds(t, "top", "4f", "--once", "--every", "300ms")
	if !strings.Contains(out, "slow rank: rank 1 holds up the others") || !strings.Contains(out, "network MB/s") {
		t.Errorf("%s", out)
	}
	f := decode[frame](t, tierflow.Succeeds(t, "top", "--once", "--every", "300ms", "--json"))
	if len(f.Rows) != 3 || f.Rows[0].Calls < 100 || f.Rows[0].Sent[0] < 1e5 || f.Rows[0].Waiting < 0.5 || f.Rows[1].Waiting != 0 || f.Found == nil {
		t.Errorf("%+v", f)
	}
	if s := tierflow.Run(t, "top", "--every", "1ms"); s.Status != 2 {
		t.Errorf("%+v", s)
	}
}

// A job whose ranks here have all been killed is in nobody's way, and can be asked for by name.
func TestDeadJobs(t *testing.T) {
	doors(t)
	play(t, "00c0ffee", stuck(0))
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(os.Getenv(env.Door), "4f2c91aa")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	left := door.Info{Job: "4f2c91aa", Ranks: 2, PID: ended.Process.Pid, Born: 1, Nodes: []string{"a", "a"}}
	left.Space, _ = os.Readlink("/proc/self/ns/pid")
	text, err := json.Marshal(left)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "r0.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s := tierflow.Run(t, "diagnose"); s.Status != 0 || !strings.HasPrefix(s.Out, "job 00c0ffee") {
		t.Errorf("%+v, want the living job's health", s)
	}
	if s := tierflow.Run(t, "diagnose", "4f"); s.Status != 1 || !strings.HasPrefix(s.Out, "died: rank 0") {
		t.Errorf("%+v, want the dead rank", s)
	}
	if out := tierflow.Succeeds(t, "ps", "4f"); !strings.Contains(out, "closed") {
		t.Errorf("rank 1 has no file beside rank 0's:\n%s", out)
	}
}

// Names of hosts and programs, and what ranks and files say, move no cursor and make no lines.
func TestEscapesAreReplaced(t *testing.T) {
	const evil = "evil\x1b[2J\u009b1A\njob ffffffff\r"
	doors(t)
	name := os.Args[0]
	os.Args[0] = evil
	defer func() { os.Args[0] = name }()
	states := stuck(12 * time.Second)
	states[0].At, states[0].Open[0].What, states[0].Open[0].Waits, states[3].At, states[3].Last = evil, evil, evil, evil, evil
	usage, err := json.Marshal(raw.Usage{Levels: []string{evil}, Activity: executor.Activity{Sent: []int64{1}, Read: []int64{1}, Calls: []executor.Calls{{Collective: evil, Plan: evil, Count: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := door.Open(os.Getenv(env.Door), door.Info{Job: "4f2c91aa", Ranks: 4, Nodes: []string{evil, "b", "c", "d"}}, func(q door.Question) door.Answer {
		if q.Usage {
			return door.Answer{Usage: usage}
		}
		if len(q.Ranks) > 0 {
			return door.Answer{States: states[1:]}
		}
		return door.Answer{States: states[:1]}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dir := t.TempDir()
	kept := door.Snapshot{Nodes: []string{evil}, States: states, Found: &verdict.Finding{Class: verdict.Late, Ranks: []int{3}, Nodes: []string{evil}, Text: evil}}
	if err := kept.Keep(dir, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "r1\x1b.snap"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := t.TempDir()
	if err := os.WriteFile(filepath.Join(bad, "r1\x1b.snap"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ps"}, {"diagnose", "4f"}, {"diagnose", "77"}, {"diagnose", dir}, {"diagnose", bad}, {"top", "4f", "--once", "--every", "300ms"}} {
		s := tierflow.Run(t, args...)
		all := s.Out + s.Errors
		if strings.ContainsFunc(all, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) || strings.Contains(all, "\njob ffffffff") || !strings.Contains(all, "?") {
			t.Errorf("tierflow %q prints %q", args, all)
		}
	}
}

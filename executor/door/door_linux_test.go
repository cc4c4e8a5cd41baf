package door

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/levels/clock/clocktest"
	"github.com/tierflow/tierflow/levels/process"
)

// rootOf returns a folder whose sockets have short enough names.
func rootOf(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "door")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "doors")
}

func open(t *testing.T, root string, rank int) *Door {
	t.Helper()
	d, err := Open(root, Info{Job: "4f2c91aa", Rank: rank, Ranks: 2, Nodes: []string{"a", "b"}}, func(q Question) Answer {
		return Answer{States: []flight.State{{Rank: rank, Doing: flight.Outside, Last: strings.Repeat("x", len(q.Ranks))}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Ranks are found and asked, and leave nothing.
func TestAsk(t *testing.T) {
	root := rootOf(t)
	a, b := open(t, root, 1), open(t, root, 0)
	jobs, err := Jobs(root)
	if err != nil || len(jobs) != 1 || len(jobs[0].Ranks) != 2 || jobs[0].Ranks[1].Rank != 1 || jobs[0].Ranks[0].PID != os.Getpid() {
		t.Fatalf("%+v, %v", jobs, err)
	}
	for i := range jobs[0].Ranks {
		answer, err := jobs[0].Ranks[i].Ask(t.Context(), Question{Ranks: []int{3, 4}})
		if err != nil || len(answer.States) != 1 || answer.States[0].Rank != i || answer.States[0].Last != "xx" {
			t.Errorf("rank %d: %+v, %v", i, answer, err)
		}
		if s := jobs[0].Ranks[i].State(); s.Doing != flight.Silent {
			t.Errorf("from outside %v", s.Doing)
		}
	}
	for _, dir := range []string{root, filepath.Join(root, "4f2c91aa")} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v; want 0700", dir, info.Mode(), err)
		}
	}
	for _, d := range []*Door{a, b, a} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
	if jobs, err := Jobs(root); err != nil || len(jobs) != 0 {
		t.Errorf("%v, %v", jobs, err)
	}
}

// A process that is stopped or dead is seen, with its recording; what it has left is swept
// when it is dead.
func TestStoppedAndGone(t *testing.T) {
	root := rootOf(t)
	i := Info{Job: "00c0ffee", Rank: 1, Ranks: 2, Space: process.Space()}
	if err := i.Prepare(root); err != nil {
		t.Fatal(err)
	}
	i.dir = i.Dir(root)
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	i.PID = cmd.Process.Pid
	i.Born = process.Born(i.PID)
	ring, err := flight.Create(i.file("rec"), 1, 2, 16)
	if err != nil {
		t.Fatal(err)
	}
	ring.Begin(0, 7, "barrier", 0)
	text, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(i.file("json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, ok := Neighbor(i.dir, 1); ok {
		t.Errorf("a process that runs is %v", s)
	}
	cmd.Process.Signal(syscall.SIGSTOP)
	want := func(d flight.Doing) {
		t.Helper()
		clocktest.Until(t, fmt.Sprintf("it is %v in its barrier", d), func() bool {
			s, ok := Neighbor(i.dir, 1)
			return ok && s.Doing == d && s.PID == i.PID && len(s.Open) == 1 && s.Open[0].What == "barrier"
		})
	}
	want(flight.Stopped)
	Sweep(root)
	want(flight.Stopped)
	cmd.Process.Kill()
	want(flight.Gone) // before it is waited for: a zombie
	_ = cmd.Wait()    // killed
	want(flight.Gone)
	hidden := i.file("json") + ".hidden"
	if err := os.Rename(i.file("json"), hidden); err != nil {
		t.Fatal(err)
	}
	if s := i.State(); s.Doing != flight.Left { // who asks had listed the job before
		t.Errorf("a rank that has removed its files and ended is %v", s.Doing)
	}
	if err := os.Rename(hidden, i.file("json")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(i.file("rec.w2"), nil, 0o600); err != nil { // of an earlier job of that process
		t.Fatal(err)
	}
	Sweep(root)
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("left after the sweep: %v", err)
	}
}

// Recordings whose rank left no name are swept once they are old: a rank may be about to come.
func TestOrphans(t *testing.T) {
	root := filepath.Join(t.TempDir(), "doors [of x]")
	i := Info{Job: "00c0ffee", Rank: 1, Ranks: 2}
	if err := i.Prepare(root); err != nil {
		t.Fatal(err)
	}
	i.dir = i.Dir(root)
	if err := os.WriteFile(i.file("rec"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	Sweep(root)
	if _, err := os.Stat(i.file("rec")); err != nil {
		t.Errorf("a new recording: %v", err)
	}
	old := time.Now().Add(-2 * orphanAge)
	if err := os.Chtimes(i.dir, old, old); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(root, "reports") // the user's own, in a folder that TIERFLOW_DOOR names
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "r1.rec"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(other, old, old); err != nil {
		t.Fatal(err)
	}
	Sweep(root)
	if _, err := os.Stat(i.dir); !os.IsNotExist(err) {
		t.Errorf("an old one is left: %v", err)
	}
	if _, err := os.Stat(filepath.Join(other, "r1.rec")); err != nil {
		t.Errorf("the user's file: %v", err)
	}
}

// A rank that takes no connection is given up.
func TestAskInVain(t *testing.T) {
	root := rootOf(t)
	i := Info{Job: "00c0ffee", Rank: 1, Ranks: 2, dir: root}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := i.Ask(ctx, Question{}); err == nil {
		t.Error("nobody answers")
	}
}

// Snapshots are kept and read.
func TestSnapshots(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dumps")
	if _, err := ReadSnapshots(dir); err == nil {
		t.Error("there is no folder")
	}
	s := Snapshot{Nodes: []string{"a"}, States: []flight.State{{Rank: 0, Doing: flight.Outside}}}
	if err := s.Keep(dir, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "r1.snap"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := ReadSnapshots(dir)
	if err != nil || len(all) != 1 || all[0].Nodes[0] != "a" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := os.Remove(filepath.Join(dir, "r0.snap")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSnapshots(dir); err == nil || !strings.Contains(err.Error(), "r1.snap") {
		t.Errorf("%v, want the file that can't be read", err)
	}
}

// lossesAt returns snapshots of ranks that lost another one: the first lost rank 10, the second 11.
func lossesAt(at ...time.Time) (all []Snapshot) {
	for rank, taken := range at {
		s := flight.State{Rank: rank, Failed: &flight.Failed{Rank: 10 + rank, Kind: verdict.Died.String()}}
		all = append(all, Snapshot{Job: "4f2c91aa", Taken: taken, States: []flight.State{s}})
	}
	return all
}

// Of snapshots taken one after the other, the failure that was met first comes first.
func TestOldestFailureComesFirst(t *testing.T) {
	at := time.Unix(100, 0)
	all := lossesAt(at.Add(30*time.Millisecond), at, at.Add(10*time.Millisecond))
	states, found := Diagnose(all, 0)
	for _, s := range states {
		if want := []time.Duration{0, 30 * time.Millisecond, 20 * time.Millisecond}[s.Rank]; s.Failed.Ago != want {
			t.Errorf("rank %d met its failure %v ago, want %v", s.Rank, s.Failed.Ago, want)
		}
	}
	if got := blamedBy(found); got != "[11] [12] [10]" {
		t.Errorf("found %s, want what rank 1 met first", got)
	}
	if all[1].States[0].Failed.Ago != 0 {
		t.Error("a snapshot was changed")
	}
}

func blamedBy(found []verdict.Finding) string {
	var all []string
	for _, f := range found {
		all = append(all, fmt.Sprint(f.Ranks))
	}
	return strings.Join(all, " ")
}

// What the launcher knows of a death comes before what ranks have met, unless it is of another job.
func TestLauncherKnowsWhoDied(t *testing.T) {
	began := time.Now()
	died := &verdict.Finding{Class: verdict.Died, Ranks: []int{11}}
	for _, test := range []struct {
		name  string
		ranks []Snapshot
		want  string
	}{
		{"nobody else has met it", nil, "[11]"},
		{"one that it has ended was lost to another rank", lossesAt(began.Add(time.Microsecond)), "[11] [10]"},
		{"it was met", lossesAt(began.Add(time.Microsecond), began.Add(2*time.Microsecond)), "[11] [10]"},
		{"ranks of a job before", lossesAt(began.Add(-time.Second)), "[11]"},
		{"ranks of a later job", lossesAt(began.Add(time.Hour)), "[10]"},
		{"a standstill before", []Snapshot{{Job: "4f2c91aa", Taken: began.Add(time.Microsecond), Found: &verdict.Finding{Class: verdict.Stopped, Ranks: []int{2}}}}, "[2]"},
	} {
		dir := t.TempDir()
		for rank := range test.ranks {
			if err := test.ranks[rank].Keep(dir, rank); err != nil {
				t.Fatal(err)
			}
		}
		if err := KeepEnding(dir, began, died); err != nil {
			t.Fatal(err)
		}
		all, err := ReadSnapshots(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, found := Diagnose(all, 0); blamedBy(found) != test.want {
			t.Errorf("%s: found %s, want %s", test.name, blamedBy(found), test.want)
		}
		for range 2 { // the second time there is none
			if err := DropEnding(dir); err != nil {
				t.Error(err)
			}
		}
		if all, _ := ReadSnapshots(dir); len(all) != len(test.ranks) {
			t.Errorf("%s: %d snapshots are left, want those of %d ranks", test.name, len(all), len(test.ranks))
		}
	}
}

// A process that computes has run; of one elsewhere nothing is known.
func TestProcessorTime(t *testing.T) {
	i := Info{PID: os.Getpid(), Space: process.Space()}
	before, _, known := i.ProcessorTime()
	if !known {
		t.Skip("this kernel doesn't count it")
	}
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); { // some of it at least
	}
	if ran, delayed, _ := i.ProcessorTime(); ran <= before || delayed < 0 {
		t.Errorf("ran for %v, then %v, and waited for %v", before, ran, delayed)
	}
	i.Space = "another"
	if _, _, known := i.ProcessorTime(); known {
		t.Error("a process of another name space is known")
	}
}

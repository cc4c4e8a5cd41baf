package planner

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/executor/door"
	"github.com/tierflow/tierflow/executor/flight"
	"github.com/tierflow/tierflow/executor/flight/verdict"
	"github.com/tierflow/tierflow/executor/proc"
)

// A profile and a trace that can't be written are an error of Close, and a line of the log: most programs
// look at no error of Close.
func TestFilesNotWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "r1.trace"), 0o700); err != nil { // in the way
		t.Fatal(err)
	}
	for want, o := range map[string]*Options{
		"/dev/full: no space left on device":         {Profile: "/dev/full"},
		"write " + dir + "/r1.trace: ":               {Trace: dir + ":every=1"},
		"trace: write " + dir + "/gone/r0.trace: no": {Trace: dir + "/gone"},
	} {
		var log bytes.Buffer
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		comms, err := Local("2", o)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir + "/gone"); err != nil { // the folder is made at the beginning
			t.Fatal(err)
		}
		var said strings.Builder
		for _, c := range comms {
			if err := c.Close(); err != nil {
				said.WriteString(err.Error())
			}
		}
		if !strings.Contains(said.String(), want) || !strings.Contains(log.String(), want) || strings.Count(log.String(), "can't be written") != 1 {
			t.Errorf("Close: %q, log: %q; want %q", said.String(), log.String(), want)
		}
	}
	if left, err := filepath.Glob(dir + "/.*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode().IsRegular() {
		t.Errorf("/dev/full is a file now: %v", err)
	}
}

// A dump goes where nobody else's file is, is read by this user alone, and one that can't be written is said.
func TestDump(t *testing.T) {
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs")
	if err := os.WriteFile(theirs, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"r0.snap", "r0.snap.new", "verdict.txt"} {
		if err := os.Symlink("theirs", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	var c proc.Config
	(&doorPlan{}).dumpInto(&c, (&Options{DumpDir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}).settings())
	dump := func() { c.Dump([]flight.State{{}}, &verdict.Finding{}) }
	dump()
	for _, name := range []string{"r0.snap", "verdict.txt"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v; want a file of mode 0600", name, info.Mode(), err)
		}
	}
	if text, err := os.ReadFile(theirs); err != nil || string(text) != "theirs" || log.Len() > 0 {
		t.Errorf("%q, %v; log %s", text, err, log.String())
	}
	for _, name := range []string{"r0.snap", "verdict.txt"} {
		name = filepath.Join(dir, name)
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(name, 0o700); err != nil { // in the way
			t.Fatal(err)
		}
		log.Reset()
		if dump(); !strings.Contains(log.String(), "write "+name) {
			t.Errorf("log %s, want %s", log.String(), name)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(dir + "/.*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// One rank of each node says that the folder of this user's jobs is another user's, whoever has no log.
func TestForeignDoor(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to make another user's folder")
	}
	root := t.TempDir()
	if err := os.Chown(root, 1, 1); err != nil {
		t.Skip(err)
	}
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	for rank := range 4 {
		p := doorPlan{root: root, info: door.Info{Job: "4f2c91aa", Rank: rank, Ranks: 4, Nodes: []string{"a", "a", "b", "b"}}}
		w := &world{}
		if p.open(w, "", nil); w.door != nil {
			t.Errorf("rank %d has a door there", rank)
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 2 || strings.Count(got, root+" belongs to another user") != 2 {
		t.Errorf("log %q, want a line of each node", got)
	}
}

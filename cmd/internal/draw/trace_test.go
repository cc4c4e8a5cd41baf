package draw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/executor/trace"
	"github.com/tierflow/tierflow/levels"
	"github.com/tierflow/tierflow/tasks"
	"github.com/tierflow/tierflow/viz"
)

var overlapLine = regexp.MustCompile(`(?m)^ib and sb overlap: \d+% of sb \(.*\)$`)

func TestTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	args := strings.Fields("trace allreduce --topo 2x2 --bytes 256KiB --plan shape=han,fs=64KiB --link i=10gbit,1us")
	s := tierflow.Run(t, append(args, "-o", file)...)
	if s.Status != 0 || s.Out != "" || !overlapLine.MatchString(s.Errors) || !strings.Contains(s.Errors, "emulated") {
		t.Errorf("%+v, want the overlap beside the file", s)
	}
	type event struct {
		Name string  `json:"name"`
		Ph   string  `json:"ph"`
		Ts   float64 `json:"ts"`
		Pid  int     `json:"pid"`
	}
	var trace struct {
		Events []event `json:"traceEvents"`
	}
	if err := json.Unmarshal([]byte(kittest.Contents(t, file)), &trace); err != nil {
		t.Fatal(err)
	}
	ranks, names, path := map[int]bool{}, map[string]int{}, 0
	for _, e := range trace.Events {
		switch {
		case e.Ph == "X" && e.Pid == levels.MaxRanks:
			path++
		case e.Ph == "X":
			ranks[e.Pid] = true
			names[e.Name]++
		}
		if e.Ts < 0 {
			t.Errorf("event %+v is before the first", e)
		}
	}
	if path == 0 || !strings.Contains(s.Errors, "critical path, which ends on rank") {
		t.Errorf("a path of %d pieces, and %s", path, s.Errors)
	}
	if len(ranks) != 4 || names["ib#3 send r0>r2 64KiB"] != 1 {
		t.Errorf("steps of ranks %v; the last segment was sent %d times", ranks, names["ib#3 send r0>r2 64KiB"])
	}
	if out := tierflow.Run(t, append(args, "-o", "-")...).Out; !json.Valid([]byte(out)) {
		t.Errorf("-o - prints %.60q", out)
	}
	if !strings.Contains(s.Errors, "between nodes: the first message leaves after ") {
		t.Errorf("nothing of begin and end in %s", s.Errors)
	}
	text := tierflow.Succeeds(t, append(args, "--format", "text", "--width", "40", "--path", "3")...)
	if !regexp.MustCompile(`(?m)^and \d+ more, `).MatchString(text) {
		t.Errorf("--path 3 prints\n%s", text)
	}
	if !overlapLine.MatchString(text) || !regexp.MustCompile(`(?m)^rank 3  s  .{40}$`).MatchString(text) {
		t.Errorf("--format text prints\n%s", text)
	}
}

// The built-in rule reduces inside nodes by sm; the table says flat, so that all is
// between nodes.
func TestTraceWithTable(t *testing.T) {
	args := strings.Fields("trace allreduce --topo 2x2 --bytes 64 --link none --format text")
	if out := tierflow.Succeeds(t, args...); !strings.Contains(out, " s ") {
		t.Errorf("no steps inside nodes in\n%s", out)
	}
	if out := tierflow.Succeeds(t, append(args, "--table", kittest.Path(t, "testdata", "tables", "recorded.json"))...); strings.Contains(out, " s ") {
		t.Errorf("steps inside nodes in\n%s", out)
	}
}

// Which calls of a job are wanted is refused before any file is read.
func TestMergeCalls(t *testing.T) {
	for _, calls := range []string{"0", "-1", "x", "5-3", "3-", "1-2-3"} {
		tierflow.Refuses(t, "--calls", "trace", "--merge", "nowhere", "-o", "-", "--calls", calls)
	}
	tierflow.Refuses(t, "--merge", "trace", "allreduce", "--calls", "3")
	tierflow.Refuses(t, "--report r.html goes with --merge only", "trace", "allreduce", "--report", "r.html")
	tierflow.Refuses(t, "--report /nowhere/r.html", "trace", "--merge", "nowhere", "--report", "/nowhere/r.html")
	tierflow.Refuses(t, "--report writes a page of HTML", "trace", "--merge", "nowhere", "-o", "x.html")
	for _, calls := range []string{"20", "0-0", "100-119"} {
		if _, err := parseCalls(calls); err != nil {
			t.Errorf("--calls %s: %v", calls, err)
		}
	}
}

// Help has the letter of each task that a timeline may show, and no letter twice.
func TestLegendOfTimelines(t *testing.T) {
	help := tierflow.Succeeds(t, "trace", "--help")
	seen := map[byte]string{}
	for _, c := range tasks.Collectives() {
		row := c.Row()
		if row.Suffix == "" {
			continue
		}
		letter := viz.Letter("i" + row.Suffix)
		if line := fmt.Sprintf("\n  %c  %s\n", letter, row.Name); !strings.Contains(help, line) || seen[letter] != "" {
			t.Errorf("%s: no line %q, or it is %s's", row.Name, line, seen[letter])
		}
		seen[letter] = row.Name
	}
}

// What traces of others hold moves no cursor and makes no lines.
func TestMergeReplacesEscapes(t *testing.T) {
	const evil = "evil\x1b[2J\u009b1A\ncall 99 forged\r"
	dir := t.TempDir()
	f := trace.File{
		Format: 1, Job: evil, Nodes: []string{evil, "b"}, Clock: evil,
		Programs: []trace.Program{{{Task: evil, Label: evil, Kind: evil, Level: "i", Peer: -1}}},
		Kinds:    []trace.Kind{{Members: []levels.Rank{0, 1}, Request: evil, Operation: evil, Plan: evil, Passes: 1, Rest: -1}},
		Calls:    []trace.Call{{End: 1000, Steps: []trace.Step{{0, 0, 10, 900}}}},
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "r0.trace"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "perfetto"} {
		s := tierflow.Run(t, "trace", "--merge", dir, "--format", format, "-o", "-")
		if s.Status != 0 || !strings.Contains(s.Out+s.Errors, "evil?[2J") {
			t.Errorf("%+v", s)
		}
		if text := s.Out + s.Errors; strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) || strings.Contains(text, "\ncall 99") {
			t.Errorf("--format %s prints %q", format, text)
		}
	}
	// A page alone.
	page := filepath.Join(t.TempDir(), "r.html")
	s := tierflow.Run(t, "trace", "--merge", dir, "--report", page)
	if text := kittest.Contents(t, page); s.Status != 0 || s.Out != "" || !strings.Contains(s.Errors, "evil?[2J") || !strings.Contains(text, "<h1>job evil?[2J") {
		t.Errorf("%+v, and a page %.400s", s, text)
	}
}

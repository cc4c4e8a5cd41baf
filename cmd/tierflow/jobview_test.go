package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tierflow/tierflow/cmd/internal/launch"
	"github.com/tierflow/tierflow/planner"
)

// Names of files may end in a number; two that differ are refused.
func TestSeeingFlags(t *testing.T) {
	for _, test := range []struct {
		trace, report string
		every         int // 0: refused
	}{
		{"t.json", "", usualEvery},
		{"", "r.html:every=1", 1},
		{"t.json", "r.html:every=4", 4},
		{"t.json:every=4", "r.html:every=4", 4},
		{"t.json:every=4", "r.html:every=2", 0},
		{"", ":every=2", 0},
		{"", "r.html:every=none", 0},
		{"t.json:every=0", "", 0},
	} {
		t.Setenv("TMPDIR", t.TempDir())
		var o launch.Options
		s := jobView{trace: test.trace, report: test.report}
		if err := s.begin(&o); (err == nil) != (test.every > 0) || err == nil && (o.TraceEvery != test.every || o.TraceDir == "") {
			t.Errorf("%q and %q: one of %d in %q, %v; want one of %d", test.trace, test.report, o.TraceEvery, o.TraceDir, err, test.every)
		}
	}
}

// A job that can't serve its metrics says so, and goes on.
func TestServeMetricsNowhere(t *testing.T) {
	var said bytes.Buffer
	c := agentCommand()
	c.SetContext(t.Context())
	c.SetErr(&said)
	serveMetrics(c, "")()
	if said.Len() > 0 {
		t.Errorf("%q", said.String())
	}
	serveMetrics(c, "nowhere")()
	if !strings.Contains(said.String(), "nowhere") {
		t.Errorf("%q, want a complaint about the address", said.String())
	}
}

// lateRank is a rank of a job whose rank 1 makes 20 calls and comes no more.
func lateRank() error {
	ctx := context.Background()
	comm, err := planner.Join(ctx, &planner.Options{StallAfter: time.Second})
	if err != nil {
		return err
	}
	for i := range 21 {
		if i == 20 && comm.Rank() == 1 {
			select {}
		}
		if err := planner.Barrier(ctx, comm); err != nil {
			return err
		}
	}
	return nil
}

// The report of a job that had to be ended has the calls until then, and the verdict.
func TestReportOfEndedJob(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	page := filepath.Join(t.TempDir(), "r.html")
	t.Setenv("TIERFLOW_TEST_AGENT", "1") // see TestMain
	s := tierflow.Run(t, "run", "-n", "3", "--oversubscribe", "--agent", os.Args[0], "--timeout", "5s", "--report", page+":every=1", "--", "env", "TIERFLOW_TEST_PROGRAM=late", os.Args[0])
	text, err := os.ReadFile(page)
	if s.Status == 0 || err != nil {
		t.Fatalf("status %d, %v\n%s", s.Status, err, s.Errors)
	}
	for _, want := range []string{`(?m)^<p class="found">late: rank 1 has not come`, `(?m)^<tbody><tr><td>barrier</td><td class="n">20</td>`} {
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("no %s in\n%s\n%s", want, text, s.Errors)
		}
	}
}

// A machine that can't be read, or that nothing is predicted on, is refused before the job runs.
func TestSeeingMachine(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for machine, want := range map[string]string{"": "", "assumed": "", "missing.json": "missing.json: no such file"} {
		err := (&jobView{trace: "t.json", machine: machine}).begin(&launch.Options{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", machine, err, want)
		}
	}
	if err := (&jobView{report: "r.html", machine: "assumed"}).begin(&launch.Options{}); err == nil || !strings.Contains(err.Error(), "give --trace FILE as well") {
		t.Error(err)
	}
}

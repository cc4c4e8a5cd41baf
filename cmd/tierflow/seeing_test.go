package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/tierflow/launch"
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
		s := seeing{trace: test.trace, report: test.report}
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

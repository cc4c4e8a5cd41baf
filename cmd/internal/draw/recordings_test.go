package draw

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/levels/join/env"
)

// TestRecorded: goroutine ranks record to files, and trace reads them.
func TestRecorded(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(env.Recorder, filepath.Join(dir, "job.%r"))
	tierflow.Succeeds(t, "trace", "allreduce", "--topo", "2x1", "--bytes", "4KiB", "--format", "text")
	text := tierflow.Succeeds(t, "trace", "--last", "0", "--recorder", filepath.Join(dir, "job.1"), filepath.Join(dir, "job.0"))
	for _, want := range []string{
		`(?m)^-\d\.\d{6}s +rank 0  begin +allreduce 1024 f32 sum #0$`,
		`(?m)^-\d\.\d{6}s +rank 1  end +barrier #3$`,
		`(?m)^-\d\.\d{6}s +rank 1  (sent|received) +(to|from) rank 0 .*allreduce 1024 f32 sum #2$`,
		`(?m)^rank 0: closed at .*\nrank 1: closed at`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if got := tierflow.Succeeds(t, "trace", "--last", "0", "--recorder", filepath.Join(dir, "job.%r")); got != text {
		t.Errorf("job.%%r prints\n%s\nwant what both files do:\n%s", got, text)
	}
	if s := tierflow.Run(t, "trace", "--recorder", filepath.Join(dir, "no.%r")); s.Status != 1 || !strings.Contains(s.Errors, "no.%r: there is no such file of any rank") {
		t.Errorf("%+v", s)
	}
	if n := strings.Count(tierflow.Succeeds(t, "trace", "--last", "3", "--recorder", filepath.Join(dir, "job.1")), "\n"); n != 4 {
		t.Errorf("--last 3 prints %d lines", n)
	}
	out := tierflow.Succeeds(t, "trace", "--format", "perfetto", "-o", "-", "--recorder", filepath.Join(dir, "job.0"))
	if !json.Valid([]byte(out)) || !strings.Contains(out, `"allreduce 1024 f32 sum"`) || !strings.Contains(out, `"rank 0"`) {
		t.Errorf("perfetto writes %.500s", out)
	}
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("tfl"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := tierflow.Run(t, "trace", "--recorder", short); s.Status != 1 || !strings.Contains(s.Errors, "short: offset 3: the file ends") {
		t.Errorf("%+v", s)
	}
	if s := tierflow.Run(t, "trace", "--recorder", filepath.Join(dir, "nosuch")); s.Status != 1 || !strings.Contains(s.Errors, "nosuch") {
		t.Errorf("%+v", s)
	}
	t.Setenv(env.Recorder, filepath.Join(dir, "all"))
	if s := tierflow.Run(t, "trace", "allreduce", "--format", "text"); s.Status != 1 || !strings.Contains(s.Errors, "TIERFLOW_RECORDER: ") || !strings.Contains(s.Errors, "%r") {
		t.Errorf("%+v", s)
	}
}

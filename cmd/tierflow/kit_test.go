package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/planner"
)

// runner makes the command that tests run, with new flags each time.
type runner func() *cobra.Command

// said is what a run of the command left behind.
type said struct {
	status      int
	out, errors string
}

// run runs the command as a user does, without a forced plan.
func (r runner) run(t *testing.T, args ...string) said {
	t.Helper()
	return r.runIn(t.Context(), t, args...)
}

// runIn runs the command until ctx ends.
func (r runner) runIn(ctx context.Context, t *testing.T, args ...string) said {
	t.Helper()
	t.Setenv(planner.PlanVariable, "")
	var out, errors bytes.Buffer
	status := execute(ctx, r(), args, strings.NewReader(""), &out, &errors)
	return said{status, out.String(), errors.String()}
}

// succeeds runs the command, which must print nothing but output, and returns that.
func (r runner) succeeds(t *testing.T, args ...string) string {
	t.Helper()
	s := r.run(t, args...)
	if s.status != 0 || s.errors != "" {
		t.Fatalf("tierflow %s: status %d, errors %q", strings.Join(args, " "), s.status, s.errors)
	}
	return s.out
}

// decode reads JSON that must have exactly the fields of T.
func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

// checkGolden compares text with a file of testdata/cli.
func checkGolden(t *testing.T, name, text string) {
	t.Helper()
	dagtest.Golden(t, inModule(t, "testdata", "cli", name), text)
}

// inModule returns the path of a file of the module, which is named from its root.
func inModule(t *testing.T, path ...string) string {
	t.Helper()
	for dir := "."; ; dir = filepath.Join(dir, "..") {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(append([]string{dir}, path...)...)
		}
		if whole, err := filepath.Abs(dir); err != nil || whole == filepath.Dir(whole) {
			t.Fatalf("no go.mod above the test's folder: %v", err)
		}
	}
}

// contents returns the text of a file.
func contents(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// between returns README.md's text from after one mark to before the next.
func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	inner, _, ended := strings.Cut(rest, to)
	if !ok || !ended {
		t.Fatalf("README.md has nothing between %q and %q", from, to)
	}
	return inner
}

// Package kittest runs commands as users do, for their tests. Only tests import it.
package kittest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/dag/dagtest"
	"github.com/tierflow/tierflow/levels/join/env"
	"github.com/tierflow/tierflow/submodules"
	"github.com/tierflow/tierflow/submodules/all"
)

// Runner makes the command that tests run, with new flags each time.
type Runner func() *cobra.Command

// Of returns the runner of a program with some commands, of all submodules.
func Of(program string, commands ...func(submodules.Registry) *cobra.Command) Runner {
	return func() *cobra.Command {
		var with []*cobra.Command
		for _, command := range commands {
			with = append(with, command(all.Submodules()))
		}
		return kit.NewRoot(program, "", with...)
	}
}

// Said is the exit status and the output of a run.
type Said struct {
	Status      int
	Out, Errors string
}

// Run runs the command as a user does, without a forced plan.
func (r Runner) Run(t *testing.T, args ...string) Said {
	t.Helper()
	return r.RunIn(t.Context(), t, args...)
}

// RunIn runs the command until ctx ends.
func (r Runner) RunIn(ctx context.Context, t *testing.T, args ...string) Said {
	t.Helper()
	t.Setenv(env.Plan, "")
	var out, errors bytes.Buffer
	status := kit.Execute(ctx, r(), args, strings.NewReader(""), &out, &errors)
	return Said{status, out.String(), errors.String()}
}

// Succeeds runs the command and returns its output. An error or a complaint fails the
// test.
func (r Runner) Succeeds(t *testing.T, args ...string) string {
	t.Helper()
	s := r.Run(t, args...)
	if s.Status != 0 || s.Errors != "" {
		t.Fatalf("tierflow %s: status %d, errors %q", strings.Join(args, " "), s.Status, s.Errors)
	}
	return s.Out
}

// Refuses runs the command with wrong arguments: it must end with status 2, print nothing and
// complain of want.
func (r Runner) Refuses(t *testing.T, want string, args ...string) {
	t.Helper()
	if s := r.Run(t, args...); s.Status != 2 || s.Out != "" || !strings.Contains(s.Errors, want) {
		t.Errorf("tierflow %s: %+v; want status 2 and %q", strings.Join(args, " "), s, want)
	}
}

// RefusesAll is Refuses of several arguments, each behind the same line, with what is complained of. Words
// are separated by blanks.
func (r Runner) RefusesAll(t *testing.T, line string, wants map[string]string) {
	t.Helper()
	for args, want := range wants {
		r.Refuses(t, want, strings.Fields(line+" "+args)...)
	}
}

// Decode reads JSON that must have exactly the fields of T.
func Decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

// CheckGolden compares text with a file of testdata/cli.
func CheckGolden(t *testing.T, name, text string) {
	t.Helper()
	dagtest.Golden(t, Path(t, "testdata", "cli", name), text)
}

// Path returns the path of a file of the tree. path names it from the root, where go.work is.
func Path(t *testing.T, path ...string) string {
	t.Helper()
	for dir := "."; ; dir = filepath.Join(dir, "..") {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return filepath.Join(append([]string{dir}, path...)...)
		}
		if whole, err := filepath.Abs(dir); err != nil || whole == filepath.Dir(whole) {
			t.Fatalf("no go.work above the test's folder: %v", err)
		}
	}
}

// Contents returns the text of a file.
func Contents(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Between returns the text of a page from after one mark to before the next.
func Between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	inner, _, ended := strings.Cut(rest, to)
	if !ok || !ended {
		t.Fatalf("nothing between %q and %q", from, to)
	}
	return inner
}

// CheckDrawing complains if a file is no SVG that has some texts.
func CheckDrawing(t *testing.T, name string, texts ...string) {
	t.Helper()
	drawing := Contents(t, name)
	for _, text := range append(texts, "<svg", "</svg>") {
		if !strings.Contains(drawing, text) {
			t.Errorf("%s has no %q", filepath.Base(name), text)
		}
	}
}

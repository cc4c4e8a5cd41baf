package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierflow/tierflow/dag/dagtest"
)

// A module is measured by its packages; tests count apart, and so do other modules.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example.org/m\n\ngo 1.26\n",
		"a/a.go":            "// Package a is one.\npackage a\n\nimport _ \"example.org/m/internal/b\"\n\nfunc Top() { leaf() }\n\nconst Two, three = 2, 3\n",
		"a/a_plan9.go":      "package a\n\ntype Kind[T any] struct{}\n\nfunc (*Kind[T]) Do() {}\n",
		"a/b.go":            "package a\n\nfunc leaf() {}\n\ntype small int\n\nfunc (small) String() string { return \"\" }\n\nvar Variable = small(1)\n",
		"a/a_test.go":       "package a\n\n// Not counted.\nfunc TestOnly() {}\n",
		"internal/b/b.go":   "package b\n\nfunc Hidden() {}\n",
		"atest/t.go":        "package atest\n\nfunc Golden() {}\n",
		"cmd/c/main.go":     "package main\n\nimport _ \"example.org/m/a\"\n\nfunc main() {}\n\nfunc Main() {}\n",
		"other/go.mod":      "module example.org/other\n\ngo 1.26\n",
		"other/o/o.go":      "package o\n",
		"a/testdata/x/x.go": "package x\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	all, err := Measure(t.Context(), dir, "example.org/m")
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i].Dir = ""
	}
	want := []Measures{
		{Package: "a", Lines: 22, TestLines: 4, Count: 5, Names: []string{"const Two", "func Top", "method Kind.Do", "type Kind", "var Variable"}, Deps: []string{"internal/b"}},
		{Package: "atest", Lines: 3, Support: true},
		{Package: "cmd/c", Lines: 7, Deps: []string{"a", "internal/b"}, Command: true},
		{Package: "internal/b", Lines: 3},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
}

// The names that other modules may use are those of testdata/api, a file for each package. A name that goes, or comes,
// shows in a review.
func TestAPI(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	all, err := Measure(t.Context(), root, "github.com/tierflow/tierflow", "./cmd/tierflow-lab/...")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for _, m := range all {
		if m.Count == 0 || strings.HasPrefix(m.Package, "testdata/") {
			continue
		}
		name := strings.ReplaceAll(m.Package, "/", "_") + ".txt"
		files[name] = true
		dagtest.Golden(t, filepath.Join(root, "testdata", "api", name), strings.Join(m.Names, "\n")+"\n")
	}
	kept, err := os.ReadDir(filepath.Join(root, "testdata", "api"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range kept {
		if strings.HasSuffix(file.Name(), ".txt") && !files[file.Name()] {
			t.Errorf("testdata/api/%s: no such package; remove it", file.Name())
		}
	}
}

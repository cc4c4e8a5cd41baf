package tree

import (
	"os"
	"path/filepath"
	"testing"
)

// Arrows that go back up are as few as an order of the files allows: one for each pair, and
// one for a circle of three.
func TestBackUp(t *testing.T) {
	for _, test := range []struct {
		arrows      [][2]string
		pairs, back int
	}{
		{nil, 0, 0},
		{[][2]string{{"b", "a"}, {"c", "b"}, {"c", "a"}}, 0, 0},
		{[][2]string{{"a", "b"}, {"b", "a"}}, 1, 1},
		{[][2]string{{"a", "b"}, {"b", "c"}, {"c", "a"}}, 0, 1},
		{[][2]string{{"a", "b"}, {"b", "c"}, {"c", "a"}, {"d", "a"}, {"b", "d"}}, 0, 1},
		{[][2]string{{"a", "b"}, {"b", "a"}, {"c", "d"}, {"d", "c"}, {"d", "a"}}, 2, 2},
	} {
		uses := Uses{}
		for _, arrow := range test.arrows {
			uses[arrow] = "name"
		}
		if pairs, back := len(uses.Pairs()), uses.BackUp(); pairs != test.pairs || back != test.back {
			t.Errorf("%v: %d pairs, %d back up; want %d, %d", test.arrows, pairs, back, test.pairs, test.back)
		}
	}
}

func TestIsOneWord(t *testing.T) {
	for name, want := range map[string]bool{"run": true, "Run": true, "MPI": true, "runRanks": false, "CheckTable": false, "p2p": true, "p2pTable": false} {
		if isOneWord(name) != want {
			t.Errorf("%s: one word is %v, want %v", name, !want, want)
		}
	}
}

// A module is measured by its packages; tests count apart, and so do other modules.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.org/m\n\ngo 1.26\n",
		"a/a.go":        "// Package a is one. It says what is which.\npackage a\n\nfunc top() { leaf() }\n\nvar x = twoWords\n",
		"a/b.go":        "package a\n\nfunc leaf() {}\n\nvar twoWords = top\n\nfunc addOne() {}\n",
		"a/a_test.go":   "package a\n\n// Not counted. At all.\nfunc testOnly() {}\n",
		"b/b.go":        "package b\n",
		"other/go.mod":  "module example.org/other\n\ngo 1.26\n",
		"other/o/o.go":  "package o\n",
		"a/testdata/.x": "",
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
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v; want two packages", all, err)
	}
	want := Measures{Package: "a", Lines: 13, TestLines: 4, Pairs: 1, Uses: 2, BackUp: 1, Functions: 3, OneWord: 2, Sentences: 2, Relatives: 2}
	if all[0] != want || all[1] != (Measures{Package: "b", Lines: 1}) {
		t.Errorf("%+v, want %+v first", all, want)
	}
}

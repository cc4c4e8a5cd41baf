// Package dagtest compares results with golden files. Only tests import it: it declares the flag
// -update, and a program can declare a flag only once. Other packages don't know the flag, so
// name the packages to update:
//
//	dagtest.Golden(t, "testdata/small.txt", got)
//
//	go test ./viz -update
package dagtest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files with what the tests got")

// Golden fails the test, showing a diff, if the file at path (slashes, relative
// to the test's folder) does not hold exactly got. With -update it writes got to
// the file instead, making its folder if there is none.
func Golden[B ~string | ~[]byte](t testing.TB, path string, got B) {
	t.Helper()
	path = filepath.FromSlash(path)
	if *update {
		write(t, path, []byte(got))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("golden file: %v\nto create it: go test -run '^%s$' -update", err, t.Name())
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nif got is right: go test -run '^%s$' -update", path, diff, t.Name())
	}
}

func write(t testing.TB, path string, got []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, got, 0o644); err != nil {
		t.Fatal(err)
	}
}

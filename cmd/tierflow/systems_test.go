package main

import (
	"go/build"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// systemsApart are packages of which systems have different parts: they serve processes,
// and files that survive them.
var systemsApart = []string{"levels/join", "levels/join/launcher", "executor/proc", "executor/flight"}

// Goroutine ranks are the same code on Windows as on macOS, apart from the signal that a
// program ends itself with. Linux runs it too, but for how much memory it lets a rank have.
func TestGoroutineRanksAreTheSameCode(t *testing.T) {
	for _, pkg := range append(below("planner"), "planner", "planner/tune", "planner/metrics", "viz") {
		if slices.Contains(systemsApart, pkg) {
			continue
		}
		windows, darwin, linux := filesOf(t, pkg, "windows"), filesOf(t, pkg, "darwin"), filesOf(t, pkg, "linux")
		if diff := cmp.Diff(darwin, windows); diff != "" {
			t.Errorf("%s on macOS and Windows: -macOS +Windows:\n%s", pkg, diff)
		}
		for _, file := range windows {
			if !slices.Contains(linux, file) && !slices.Contains(linuxOwn, pkg+"/"+file) {
				t.Errorf("%s/%s is for other systems than Linux, so no test here runs it", pkg, file)
			}
		}
	}
}

// linuxOwn are the files that Linux has its own version of.
var linuxOwn = []string{
	"executor/wire/heap_other.go", // how much memory the machine has
	"executor/internal/tcp/congestion_other.go",
	"planner/answer_other.go",        // a launcher asks processes only
	"executor/door/process_other.go", // which has /proc
	"levels/process/process_other.go",
	"executor/monotonic_other.go", // one clock for all processes
	"costs/measure/cputime_other.go", "costs/measure/yield_other.go",
}

// filesOf lists a package's files on a system, without those that differ only in how a
// process ends itself.
func filesOf(t *testing.T, pkg, system string) []string {
	t.Helper()
	at := build.Default
	at.GOOS, at.GOARCH, at.CgoEnabled = system, "arm64", false
	p, err := at.ImportDir(filepath.Join("..", "..", filepath.FromSlash(pkg)), 0)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(p.GoFiles, func(name string) bool { return strings.HasPrefix(name, "quit_") })
}

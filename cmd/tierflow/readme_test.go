package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/submodules/all"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The README's program must compile, and print what the README says under the
// launcher.
func TestReadmeProgram(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	text := readme(t)
	program := buildProgram(t, t.TempDir(), kittest.Between(t, text, "```go\n", "```"))
	const command = "$ tierflow run -n 2 -- ./prog\n"
	want := sortedLines(kittest.Between(t, text, command, "```"))
	t.Setenv("TIERFLOW_TEST_AGENT", "1") // see TestMain
	got := sortedLines(tierflow.Succeeds(t, "run", "-n", "2", "--oversubscribe", "--agent", os.Args[0], "--", program))
	if !slices.Equal(got, want) {
		t.Errorf("%sprints %q, the README says %q", command, got, want)
	}
}

func sortedLines(s string) []string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	slices.Sort(lines)
	return lines
}

// What the README's command table calls must parse, and leave no command out.
func TestReadmeCommands(t *testing.T) {
	table := kittest.Between(t, readme(t), "| command | what it does |", "\n\n")
	root := rootCommand(all.Submodules())
	for _, sub := range root.Commands() {
		if !sub.Hidden && !strings.Contains(table, "`tierflow "+sub.Name()) {
			t.Errorf("the README's table has no tierflow %s", sub.Name())
		}
	}
	for row := range strings.Lines(table) {
		_, rest, ok := strings.Cut(row, "`tierflow ")
		if !ok {
			continue
		}
		line, _, _ := strings.Cut(rest, "`")
		checkCommand(t, "README.md", line)
	}
}

// Files and folders that the README points at must exist.
func TestReadmePaths(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	paths := []string{"LICENSE", "testdata/readme/allreduce.svg", "testdata/peers/README.md", "cmd/tierflow/imports_test.go"}
	for row := range strings.Lines(kittest.Between(t, readme(t), "| folder | what is in it |\n|---|---|\n", "\n\n")) {
		paths = append(paths, kittest.Between(t, row, "| `", "` |"))
	}
	for _, p := range paths {
		if !strings.Contains(readme(t), p) {
			t.Errorf("README.md no longer mentions %s", p)
		}
		if _, err := fs.Stat(root, p); err != nil {
			t.Errorf("README.md mentions what is not there: %v", err)
		}
	}
}

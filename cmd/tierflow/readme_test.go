package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/submodules/all"
)

func readme(t *testing.T) string { return kittest.Contents(t, filepath.Join("..", "..", "README.md")) }

// guidePage is the text of a page of the guide.
func guidePage(t *testing.T, name string) string {
	return kittest.Contents(t, filepath.Join("guide", name))
}

// What the guide's command table calls must parse, and leave no command out.
func TestCommandTable(t *testing.T) {
	const page = "commands.md"
	table := kittest.Between(t, guidePage(t, page), "| command | what it does |", "\n\n")
	root := rootCommand(all.Submodules())
	for _, sub := range root.Commands() {
		if !sub.Hidden && !strings.Contains(table, "`tierflow "+sub.Name()) {
			t.Errorf("the table of %s has no tierflow %s", page, sub.Name())
		}
	}
	for row := range strings.Lines(table) {
		_, rest, ok := strings.Cut(row, "`tierflow ")
		if !ok {
			continue
		}
		line, _, _ := strings.Cut(rest, "`")
		checkCommand(t, page, line)
	}
}

// The folders of the guide's table must exist.
func TestFolderTable(t *testing.T) {
	for row := range strings.Lines(kittest.Between(t, guidePage(t, "8-inside.md"), "| folder | what is in it |\n|---|---|\n", "\n\n")) {
		if _, err := os.Stat(filepath.Join("..", "..", kittest.Between(t, row, "| `", "` |"))); err != nil {
			t.Error(err)
		}
	}
}

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
	"github.com/tierflow/tierflow/submodules/all"
)

// lab is the whole command.
var lab kittest.Runner = func() *cobra.Command { return root(all.Submodules()) }

// All commands' help is one page.
func TestHelp(t *testing.T) {
	var page strings.Builder
	page.WriteString(lab.Succeeds(t, "--help"))
	for _, sub := range lab().Commands() {
		if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
			page.WriteString("\n=== " + sub.Name() + "\n" + lab.Succeeds(t, sub.Name(), "--help"))
		}
	}
	kittest.CheckGolden(t, "lab_help.txt", page.String())
}

// Each wrong call ends with status 2 and one complaint, and prints nothing else.
func TestWrongArguments(t *testing.T) {
	var page strings.Builder
	for _, line := range []string{
		"",
		"nosuch",
		"accuracy bcast",
		"compare x",
		"decisions scan --topo 4x2",
		"models x",
		"share bcast --time 0s",
		"overlap --svg /nowhere/x.svg",
		"overlap --plan i=adapt/chain --plan i=x",
		"overlap ib+ib",
		"overlap ib+iag",
		"overlap --topo 8",
		"peers 4x2",
		"peers --topo 4y2",
		"peers --topo 4x2/rr",
		"peers --topo a:3,b:1",
		"peers --topo 1x1",
		"peers --rate fast",
		"peers --noise 1us --sweep 0",
		"disturb --share 2 -- true",
		"peers --ops bcast --counts 1,0",
		"peers --ops bcast,bcast",
		"peers --bytes 5",
		"peers --bytes 1GiB",
		"peers --rounds 0",
		"peers --libraries openmpi,nccl",
		"peers --sweep -1s",
	} {
		s := lab.Run(t, strings.Fields(line)...)
		if s.Status != 2 || s.Out != "" || !strings.Contains(s.Errors, "tierflow-lab") {
			t.Errorf("tierflow-lab %s: status %d, output %q, errors %q; want status 2 and a complaint", line, s.Status, s.Out, s.Errors)
		}
		page.WriteString("$ tierflow-lab " + line + "\n" + s.Errors)
	}
	kittest.CheckGolden(t, "lab_wrong.txt", page.String())
}

// A shell is offered what only the laboratory has.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{"overlap ib+s": "ib+sb", "peers --libraries ": "openmpi", "share bc": "bcast", "decisions bc": "bcast"} {
		words := strings.Fields(lab.Run(t, append([]string{"__complete"}, strings.Split(line, " ")...)...).Out)
		if !strings.Contains(" "+strings.Join(words, " ")+" ", " "+want+" ") {
			t.Errorf("%s: offered %q, not %s", line, words, want)
		}
	}
}

// The command lines of tierflow-lab in .md files must parse, and its README leaves none out.
func TestMarkdownCommands(t *testing.T) {
	top, found := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".md" {
			return err
		}
		text, err := os.ReadFile(name)
		for line := range strings.Lines(string(text)) {
			_, rest, ok := strings.Cut(line, "tierflow-lab ")
			if !ok || !strings.HasPrefix(line, "    ") {
				continue
			}
			found++
			args, _, _ := strings.Cut(strings.TrimSpace(rest), "  ")
			args, _, _ = strings.Cut(args, " >")
			sub, flags, err := lab().Find(strings.Fields(args))
			if err != nil || !sub.Runnable() || sub.ParseFlags(flags) != nil {
				t.Errorf("%s: tierflow-lab %s: no such command, or flags", name, args)
			}
		}
		return err
	})
	if err != nil || found < 5 {
		t.Errorf("%d command lines in .md files, %v", found, err)
	}
	page := kittest.Contents(t, "README.md")
	for _, sub := range lab().Commands() {
		if !sub.Hidden && sub.Name() != "completion" && !strings.Contains(page, "| `"+sub.Name()+"` |") {
			t.Errorf("README.md has no %s", sub.Name())
		}
	}
}

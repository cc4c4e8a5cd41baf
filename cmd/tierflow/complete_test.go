package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tierflow/tierflow/cmd/internal/kit"
	"github.com/tierflow/tierflow/submodules/all"
	"github.com/tierflow/tierflow/tasks"
)

// completed returns what a shell is offered for the last of args, and cobra's directive.
func completed(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(tierflow.Run(t, append([]string{"__complete"}, args...)...).Out), "\n")
	return lines[:len(lines)-1], lines[len(lines)-1]
}

// allCommands calls do with every command that does something, and the words that name it.
func allCommands(c *cobra.Command, path []string, do func(c *cobra.Command, path []string)) {
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			do(sub, append(slices.Clone(path), sub.Name()))
			allCommands(sub, append(slices.Clone(path), sub.Name()), do)
		}
	}
}

// Every command completes the collectives that it takes, and its flags their values.
func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	for name := range strings.FieldsSeq("one.json other.txt") {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	flags := map[string][][]string{ // what is begun, then what must be offered
		"topo":       {{"", "4x2", "one.json"}, {"64x", "64x12"}, {"3x2", "3x2/rr"}},
		"machine":    {{"", "assumed", "one.json"}, {"o", "one.json"}},
		"simulate":   {{"", "assumed", "one.json"}},
		"table":      {{"", "one.json"}},
		"link":       {{"", "none", "i=1gbit,50us"}},
		"ops":        {{"", "bcast", "all"}, {"bcast,all", "bcast,allreduce"}},
		"dtype":      {{"", "f32"}},
		"reduce-op":  {{"", "sum", "max"}},
		"shapes":     {{"", "han"}, {"han,f", "han,flat"}},
		"submodules": {{"", "adapt"}},
		"plan": {
			{"", "shape=", "fs=", "i=", "ib=", "allreduce:"},
			{"shape=", "shape=han", "shape=rsag"},
			{"shape=han,fs=64", "shape=han,fs=64KiB"},
			{"shape=han,i=", "shape=han,i=adapt", "shape=han,i=adapt/"},
			{"shape=han,i=adapt/ch", "shape=han,i=adapt/chain"},
			{"i=adapt/chain/32", "i=adapt/chain/32KiB"},
			{"bcast:shape=han;allreduce:sh", "bcast:shape=han;allreduce:shape="},
		},
	}
	seen := map[string]bool{}
	allCommands(rootCommand(all.Submodules()), nil, func(c *cobra.Command, path []string) {
		_, operand, _ := strings.Cut(c.Use, " ")
		if strings.HasPrefix(strings.TrimLeft(operand, "["), "OP") {
			seen["OP"] = true
			words, _ := completed(t, append(path, "")...)
			for _, name := range kit.Names(tasks.Requestable()) {
				if !slices.Contains(words, name) {
					t.Errorf("%s: offered %q, not %s", c.CommandPath(), words, name)
				}
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "bytes" {
				if words, how := completed(t, append(path, "--bytes", "")...); len(words) > 0 || how != ":4" {
					t.Errorf("%s --bytes: offered %q, %s, want nothing, no file either", c.CommandPath(), words, how)
				}
			}
			for _, want := range flags[f.Name] {
				seen[f.Name] = true
				words, _ := completed(t, append(path, "--"+f.Name, want[0])...)
				for _, w := range want[1:] {
					if !slices.Contains(words, w) {
						t.Errorf("%s --%s %s: offered %q, not %s", c.CommandPath(), f.Name, want[0], words, w)
					}
				}
				for _, w := range words {
					if !strings.HasPrefix(w, want[0]) || w == "other.txt" {
						t.Errorf("%s --%s %s: offered %q", c.CommandPath(), f.Name, want[0], w)
					}
				}
			}
		})
	})
	if len(seen) != len(flags)+1 {
		t.Errorf("no command has some of the flags: seen %v", seen)
	}
}

// What is offered for a plan can be read, once it is complete; only algorithms that do a
// task are offered for it.
func TestCompletionOfPlans(t *testing.T) {
	for _, begun := range []string{"shape=", "fs=", "w=", "eager=", "order=", "i=adapt/", "s=sm/", "ib=nbc/", "i=adapt/chain/"} {
		words, how := completed(t, "plan", "bcast", "--plan", begun)
		if len(words) == 0 || how != ":6" {
			t.Errorf("%s: offered %q, %s", begun, words, how)
		}
		for _, w := range words {
			forced, err := tasks.ParseForced(w)
			if err == nil && strings.Count(w, "/") < 2 {
				for _, item := range forced {
					err = all.Submodules().Check(item.Plan)
				}
			}
			if err != nil {
				t.Errorf("%s: offered %s: %v", begun, w, err)
			}
		}
	}
	words, _ := completed(t, "plan", "bcast", "--plan", "ib=nbc/")
	if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "rabenseifner") }) {
		t.Errorf("for a bcast between nodes there is %q", words)
	}
	for line, want := range map[string]string{
		"bench task i": "ib", "dag allreduce --format p": "png", "bench coll bcast,allr": "bcast,allreduce",
		"verify a": "all", "tune --method t": "tasks", "run --map ": "rr",
	} {
		if words, _ := completed(t, strings.Split(line, " ")...); !slices.Contains(words, want) {
			t.Errorf("%s: offered %q, not %s", line, words, want)
		}
	}
}

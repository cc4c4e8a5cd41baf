package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tierflow/tierflow/cmd/internal/kit/kittest"
)

// Each command in the guide and in README.md is run, and prints what the page says; or a comment before its block says why
// not: <!-- not run: needs a cluster -->. Then it parses at least. A page's program is ./prog.
func TestGuideCommands(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks as processes need Linux")
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexport TIERFLOW_TEST_COMMAND=1\n[ \"$1\" = run ] && shift && set -- run --oversubscribe \"$@\"\nexec %s \"$@\"\n", os.Args[0]) // see TestMain
	if err := os.WriteFile(filepath.Join(bin, "tierflow"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	ran, pages := 0, markdown(t)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if name != "README.md" && !strings.HasPrefix(name, guidePages) {
			continue
		}
		text, folder := pages[name], t.TempDir()
		for _, b := range codeBlocks(text) {
			commands := b.commands()
			if line := b.hidden(); line != "" && len(commands) == 0 {
				t.Errorf("%s: %q looks like a command: begin it with $", name, line)
			}
			for _, c := range commands {
				if b.mark != "" {
					checkCommands(t, name, c.line)
					continue
				}
				ran++
				if programs := snippets(text, "go"); strings.Contains(c.line, "./prog") && len(programs) > 0 {
					buildProgram(t, folder, programs[0])
				}
				shell := exec.CommandContext(t.Context(), "sh", "-c", c.line)
				shell.Dir = folder
				out, err := shell.CombinedOutput()
				if err != nil || len(c.output) > 0 && !prints(string(out), c.output) {
					t.Errorf("%s: $ %s: %v, it prints\n%s\nand the page says\n%s", name, c.line, err, out, strings.Join(c.output, "\n"))
				}
			}
		}
	}
	if ran < 15 {
		t.Errorf("%d commands of pages ran", ran)
	}
}

// codeBlock is a block of code of a page.
type codeBlock struct {
	language string // of a fence
	mark     string // why it is not run
	lines    []string
}

var notRun = regexp.MustCompile(`^<!-- not run: (.+) -->$`)

// codeBlocks are the fenced and indented blocks of a page.
func codeBlocks(text string) (all []codeBlock) {
	fenced, before := false, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		mark := ""
		if m := notRun.FindStringSubmatch(before); m != nil {
			mark = m[1]
		}
		code, indented := strings.CutPrefix(line, "    ")
		switch language, fence := strings.CutPrefix(line, "```"); {
		case fence && fenced:
			fenced = false
		case fence:
			fenced = true
			all = append(all, codeBlock{language: language, mark: mark})
		case fenced:
			b := &all[len(all)-1]
			b.lines = append(b.lines, line)
		case indented:
			if !strings.HasPrefix(before, "    ") {
				all = append(all, codeBlock{mark: mark})
			}
			b := &all[len(all)-1]
			b.lines = append(b.lines, code)
		}
		before = line
	}
	return all
}

// pageCommand is a command of a page with what it prints there; …: anything.
type pageCommand struct {
	line   string
	output []string
}

// commands are the lines of a block behind a prompt; a backslash at its end goes on with the next line.
func (b codeBlock) commands() (all []pageCommand) {
	for _, line := range b.lines {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, pageCommand{line: command})
		} else if n := len(all); n > 0 && strings.HasSuffix(all[n-1].line, `\`) {
			all[n-1].line = strings.TrimSuffix(all[n-1].line, `\`) + strings.TrimSpace(line)
		} else if n > 0 {
			all[n-1].output = append(all[n-1].output, line)
		}
	}
	return all
}

var commandLike = regexp.MustCompile(`^([A-Z_]+=\S+ +)*(tierflow|go|mpirun|mpiexec|srun|torchrun|kubectl|docker|cc|make|export|\./\w+)( |$)`)

// hidden is a line of a block that looks like a command.
func (b codeBlock) hidden() string {
	if b.language != "" && b.language != "sh" {
		return ""
	}
	for _, line := range b.lines {
		if commandLike.MatchString(line) {
			return line
		}
	}
	return ""
}

// checkCommands parses the commands of tierflow in a line.
func checkCommands(t *testing.T, page, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " # ")
	for part := range strings.SplitSeq(line, " -- ") {
		if _, args, ok := strings.Cut(" "+strings.ReplaceAll(part, "go run ./cmd/tierflow ", "tierflow "), " tierflow "); ok {
			checkCommand(t, page, args)
		}
	}
}

// prints reports whether out is what a page says. Ranks print in any order.
func prints(out string, page []string) bool {
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if page = slices.Clone(page); strings.HasPrefix(page[0], "[") {
		slices.Sort(lines)
		slices.Sort(page)
	}
	var want strings.Builder
	for _, line := range page {
		if line == "…" {
			want.WriteString("(?s:.*)")
		} else {
			want.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "\n")
		}
	}
	return regexp.MustCompile("^" + want.String() + "$").MatchString(strings.Join(lines, "\n") + "\n")
}

// The test sees commands, marks, and output that differs.
func TestGuideCommandsFound(t *testing.T) {
	const text = "a\n\n<!-- not run: why -->\n    $ b \\\n      c\n\n```\n$ d\n1\n$ e\n```\n\n    tierflow f\n\n```go\ngo f()\n```\n"
	got := ""
	for _, b := range codeBlocks(text) {
		got += fmt.Sprintf("%q %q %q %q\n", b.language, b.mark, b.commands(), b.hidden())
	}
	want := `"" "why" [{"b c" []}] ""
"" "" [{"d" ["1"]} {"e" []}] ""
"" "" [] "tierflow f"
"go" "" [] ""
`
	if got != want {
		t.Errorf("blocks are\n%s\nwant\n%s", got, want)
	}
	for _, test := range []struct {
		out, page string
		want      bool
	}{
		{"a 1\nb\nc\n", "a …\n…", true},
		{"a 1\nb\nc\n", "a …\nb\nc", true},
		{"a 1\nb\nc\n", "a …\nb", false},
		{"a 1\nb\nc\n", "a 2\n…", false},
		{"b\na\n", "a\nb", false},
		{"[1] b\n[0] a\n", "[0] a\n[1] b", true},
		{"[1] b\n[0] a\n", "[0] a\n[1] c", false},
	} {
		if got := prints(test.out, strings.Split(test.page, "\n")); got != test.want {
			t.Errorf("that %q is %q: %v", test.out, test.page, got)
		}
	}
}

// The page of errors has each kind of planner, elastic and join once, no other, and its conditions compile.
func TestErrorsPage(t *testing.T) {
	const page = "errors.md"
	var kinds []string
	for pkg, list := range map[string]string{"planner": "planner.txt", "elastic": "planner_elastic.txt", "join": "levels_join.txt"} {
		for _, m := range regexp.MustCompile(`(?m)^(?:type (\w+Error)|var (Err\w+))$`).FindAllStringSubmatch(kittest.Contents(t, filepath.Join("..", "..", "testdata", "api", list)), -1) {
			kinds = append(kinds, pkg+"."+m[1]+m[2])
		}
	}
	var named, lines []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(errors\\.(?:Is\\(err, |AsType\\[\\*)(\\w+\\.\\w+)\\]?[()er]*)` \\|").FindAllStringSubmatch(guidePage(t, page), -1) {
		named, lines = append(named, m[2]), append(lines, "fmt.Println("+m[1]+")")
	}
	slices.Sort(kinds)
	slices.Sort(named)
	if !slices.Equal(kinds, named) {
		t.Errorf("%s has the kinds\n%v\nthere are\n%v", page, named, kinds)
	}
	vetProgram(t, page, "package main\n\nimport (\n\"errors\"\n\"fmt\"\n\"github.com/tierflow/tierflow/planner\"\n\"github.com/tierflow/tierflow/planner/elastic\"\n\"github.com/tierflow/tierflow/levels/join\"\n)\n\nfunc main() {\nvar err error\n"+strings.Join(lines, "\n")+"\n}\n")
}
